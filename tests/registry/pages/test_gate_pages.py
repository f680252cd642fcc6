"""A model's gates on its page, and a request's rules."""

import re
from copy import deepcopy

import pytest
from django.test import Client

from jobs.actions.registry import gate_rules, promotions
from jobs.models import PromotionRequest
from jobs.spec.gates import GateRules
from tests.markup import text_of
from tests.module_rows import ModuleRows
from tests.people import browser_of
from tests.present import present
from tests.registry.conftest import Yard, judge, see
from tests.registry.pages.test_pages import PAGES, make_filled


@pytest.fixture(scope="module")
def module_yard(module_rows: ModuleRows, tmp_path_factory: pytest.TempPathFactory) -> Yard:
    folder = tmp_path_factory.mktemp("versions")
    return module_rows(lambda: make_filled(folder))


@pytest.fixture
def filled(module_yard: Yard, db: None) -> Yard:
    return deepcopy(module_yard)


def test_an_anonymous_user_is_redirected_to_the_login(filled: Yard, client: Client) -> None:
    for path in PAGES:
        assert client.get(path).status_code == 302


RULES = {
    "metric": "f1_macro", "tolerance": "0.02", "latency_p95_ms": "", "comment": "why", "revision": "0",
    "floors-rows": "2", "floors-0-metric": "accuracy", "floors-0-limit": "0.9", "slices-rows": "1",
}  # fmt: skip


def test_an_approver_changes_the_gates_on_their_page_and_empty_rows_are_left_out(filled: Yard) -> None:
    answer = browser_of(filled.approver).post("/models/digits/gates", RULES, follow=True)
    assert "Saved as revision 1" in text_of(answer)
    assert "metric: the objective → f1_macro" in text_of(answer)
    assert len(filled.model.gate_revisions.get().rules.floors) == 1
    assert "last changed by approver" in text_of(see(filled.member, "/models/digits"))


def test_adding_a_row_saves_nothing_and_keeps_the_entries(filled: Yard) -> None:
    page = browser_of(filled.approver).post("/models/digits/gates", RULES | {"more": "slices"})
    assert 'name="slices-1-column"' in page.content.decode()
    assert 'value="0.9"' in page.content.decode()
    assert not filled.model.gate_revisions.exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tolerance": "-1"}, "greater than or equal to 0"),
        ({"floors-1-limit": "0.5"}, "Field required"),
        ({"slices-0-column": "city"}, "Field required"),
        ({"latency_p95_ms": "0"}, "greater than 0"),
        ({"floors-1-metric": "accuracy", "floors-1-limit": "0.5"}, "is there twice"),
    ],
)
def test_a_wrong_rule_is_shown_at_its_field(filled: Yard, change: dict[str, str], message: str) -> None:
    page = browser_of(filled.approver).post("/models/digits/gates", RULES | change)
    assert page.status_code == 422
    assert message in text_of(page)
    assert not filled.model.gate_revisions.exists()


@pytest.mark.parametrize("rows", ["x", "-1", "9" * 5000, "٣"])
def test_a_strange_number_of_rows_is_no_error_of_ours(filled: Yard, rows: str) -> None:
    page = browser_of(filled.approver).post("/models/digits/gates", RULES | {"floors-rows": rows})
    assert page.status_code in (303, 422)


def test_a_change_meanwhile_keeps_the_entries_and_names_the_other_person(filled: Yard) -> None:
    gate_rules.change_rules(filled.model, GateRules(tolerance=0.3), by=filled.second_approver)
    page = browser_of(filled.approver).post("/models/digits/gates", RULES)
    assert page.status_code == 409
    assert "second-approver saved revision 1 while you were editing" in text_of(page)
    assert "tolerance: 0.01 → 0.3" in text_of(page)
    assert filled.model.gate_revisions.count() == 1


def test_a_member_sees_the_rules_and_who_may_change_them_but_no_form(filled: Yard) -> None:
    page = see(filled.member, "/models/digits/gates")
    assert "Approvers and admins of vision may change them" in text_of(page)
    assert b"Save as revision" not in page.content
    assert browser_of(filled.member).post("/models/digits/gates", RULES).status_code == 403


def test_a_gate_without_a_metric_shows_its_numbers_as_they_are(filled: Yard) -> None:
    promotion = filled.request()
    counted = {"name": "finite", "state": "passed", "value": 0.0, "limit": 0.0}
    measured = {"name": "metric", "metric": "accuracy", "state": "passed", "value": 0.5, "limit": 0.49}
    judge(promotion, {"gates": [counted, measured]})
    text = text_of(see(filled.approver, f"/approvals/{promotion.pk}"))
    assert "Finite predictions passed 0 0 –" in text and "0.5000" in text
    assert re.search(r"If you approve, v\d+ goes into production", text)


def test_the_list_of_models_names_the_production_version_once(filled: Yard) -> None:
    promotions.approve(PromotionRequest.objects.latest("pk"), comment="", by=filled.approver)
    number = present(filled.endpoint.production).number
    row = text_of(see(filled.member, "/models")).split("Created")[1]
    assert f"digits v{number}" in row, "the name of the column is enough"


def test_a_request_shows_its_rules_each_comparison_and_the_next_step(filled: Yard) -> None:
    gate_rules.change_rules(filled.model, GateRules(tolerance=0.02), by=filled.second_approver)
    promotion = filled.request()
    gate_rules.change_rules(filled.model, GateRules(tolerance=0.3), by=filled.second_approver)
    alternative = {
        "metric": "log_loss", "direction": "min", "value": 0.43, "limit": 0.49, "gain": 0.06, "low": 0.03,
        "high": 0.09, "passed": True,
    }  # fmt: skip
    passed = {
        "name": "better_than_baseline",
        "state": "passed",
        "rule": "a rule",
        "alternatives": [alternative],
    }
    judge(promotion, {"gates": [passed, {"name": "latency", "state": "failed", "value": 9.0, "limit": 5.0}]})
    text = text_of(see(filled.approver, f"/approvals/{promotion.pk}"))
    assert "revision 1 , last changed by" in text
    assert "second-approver" in text
    assert "revision 2 applies to later requests" in text
    assert "log_loss 0.4300 against 0.4900: gain 0.0600 (0.0300 to 0.0900), passes" in text
    assert "Next: Choose a smaller model or quantize it." in text


def test_the_metrics_of_a_request_show_the_difference_to_the_champion(filled: Yard) -> None:
    promotion = PromotionRequest.objects.latest("pk")
    champion = present(filled.endpoint.production)
    for version, figures in (
        (champion, {"accuracy": 0.5, "log_loss": 0.25, "own": 2.0}),
        (promotion.version, {"accuracy": 0.75, "log_loss": 0.75, "own": 1.5, "f1_macro": 0.5}),
    ):
        version.metrics = {"test": figures}
        version.save()
    text = text_of(see(filled.approver, f"/approvals/{promotion.pk}")).split("Difference")[1]
    assert "Accuracy 0.7500 0.5000 +0.2500 better" in text
    assert "Log loss 0.7500 0.2500 +0.5000 worse" in text
    assert "own 1.500 2.000 -0.5000" in text
    assert "F1, mean over classes 0.5000 – –" in text


def test_the_decision_with_its_state_is_before_the_gates(filled: Yard) -> None:
    promotion = filled.pending()
    page = see(filled.approver, f"/approvals/{promotion.pk}").content.decode().split("<main")[1]
    before, gates = page.split('aria-label="Gates"')
    assert "waiting for a decision" in before.split('aria-label="Decide"')[1]
    # The states below are those of gates.
    assert "ty-state" not in gates.split("<table")[0]


def test_gates_have_names_in_words(filled: Yard) -> None:
    promotion = filled.request()
    names = ["better_than_baseline", "floor:f1_macro", "slice:city=Paris", "of_a_later_release"]
    judge(promotion, {"gates": [{"name": name, "state": "not_evaluated"} for name in names]})
    page = see(filled.approver, f"/approvals/{promotion.pk}")
    text = text_of(page)
    for title in (
        "Lead over a constant prediction",
        "Floor: f1_macro",
        "Slice: city=Paris",
        "of_a_later_release",
    ):
        assert text.count(title) >= 2, "in the table, and at the box that accepts it"
    assert "better_than_baseline" not in text
    assert 'value="better_than_baseline"' in page.content.decode()
