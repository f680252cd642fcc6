"""A model's gate rules: who may change them, their revisions, and the requests they apply to."""

from typing import Any

import pytest
from pydantic import ValidationError

from jobs.actions.registry import gate_rules, promotions
from jobs.errors import Forbidden, GatesOpen, NotFound, StaleState
from jobs.models import AuditEvent, GateRevision, PromotionRequest
from jobs.queries.registry import gate_rules as queries
from jobs.spec.gates import Floor, GateRules, Slice
from jobs.spec.sections.search import Objective
from tests.registry.conftest import GOOD_GATES, Yard, judge

State = PromotionRequest.State
LOOSE = GateRules(tolerance=0.5)


@pytest.mark.parametrize("who", ["approver", "owner"])
def test_approvers_and_admins_change_the_gates(yard: Yard, who: str) -> None:
    gate_rules.change_rules(yard.model, LOOSE, by=getattr(yard, who))
    assert queries.rules_of(queries.current_revision(yard.model)) == LOOSE


@pytest.mark.parametrize(
    ("who", "error"), [("member", Forbidden), ("viewer", Forbidden), ("stranger", NotFound)]
)
def test_no_one_else_does(yard: Yard, who: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        gate_rules.change_rules(yard.model, LOOSE, by=getattr(yard, who))
    assert not GateRevision.objects.exists()


def test_each_change_is_a_revision_with_an_audit_row_that_has_the_difference(yard: Yard) -> None:
    gate_rules.change_rules(yard.model, LOOSE, comment=" a pilot ", by=yard.approver)
    floors = (Floor(metric="roc_auc", limit=0.7),)
    gate_rules.change_rules(yard.model, GateRules(metric="roc_auc", floors=floors), by=yard.second_approver)
    newest, first = queries.gates_history(yard.model)
    assert (newest.revision, newest.changed_by) == (2, "second-approver")
    assert newest.differences == [
        "metric: the objective → roc_auc", "tolerance: 0.5 → 0.01", "floor:roc_auc: added, limit 0.7",
    ]  # fmt: skip
    assert (first.differences, first.comment) == (["tolerance: 0.01 → 0.5"], "a pilot")
    event = AuditEvent.objects.filter(action="gates.change").latest("pk")
    assert (event.target, event.detail["differences"]) == ("model:digits", newest.differences)


def test_the_same_rules_are_no_revision(yard: Yard) -> None:
    gate_rules.change_rules(yard.model, LOOSE, by=yard.approver)
    gate_rules.change_rules(yard.model, LOOSE, by=yard.second_approver)
    assert GateRevision.objects.count() == 1


def test_a_change_of_rules_that_were_read_before_another_change_is_refused(yard: Yard) -> None:
    gate_rules.change_rules(yard.model, LOOSE, seen=0, by=yard.approver)
    with pytest.raises(StaleState, match="revision 1, not 0"):
        gate_rules.change_rules(yard.model, GateRules(tolerance=0.2), seen=0, by=yard.second_approver)
    assert queries.current_revision(yard.model).rules == LOOSE  # type: ignore[union-attr]


def test_an_open_request_keeps_the_rules_it_was_made_under_even_when_its_gates_run_again(yard: Yard) -> None:
    gate_rules.change_rules(yard.model, GateRules(tolerance=0.02), by=yard.second_approver)
    waiting = yard.pending()
    gate_rules.change_rules(yard.model, LOOSE, by=yard.approver)
    yard.live()
    with pytest.raises(StaleState, match="are running again"):
        promotions.approve(waiting, by=yard.approver)
    waiting.refresh_from_db()
    assert queries.revision_number(waiting.gate_revision) == 1
    assert queries.revision_number(yard.request().gate_revision) == 2


def own_change(yard: Yard) -> PromotionRequest:
    """Let the owner loosen the gates and request a promotion; the gates have passed."""
    gate_rules.change_rules(yard.model, LOOSE, by=yard.owner)
    promotion = promotions.request(yard.version(), stage="production", by=yard.owner)
    judge(promotion, GOOD_GATES)
    return promotion


def test_a_requester_who_wrote_the_gates_is_named_and_the_approver_must_accept_it(yard: Yard) -> None:
    promotion = own_change(yard)
    gate = promotion.gates[-1]
    assert (gate["name"], gate["state"]) == ("rules_written_by_others", "not_evaluated")
    assert gate["detail"] == "changed by owner: revision 1: tolerance: 0.01 → 0.5"
    with pytest.raises(GatesOpen, match="rules_written_by_others"):
        promotions.approve(promotion, by=yard.approver)
    accept = ["rules_written_by_others"]
    assert promotions.approve(promotion, accept=accept, by=yard.approver).state == State.APPROVED


def test_a_later_change_by_another_person_does_not_hide_the_requesters_own(yard: Yard) -> None:
    gate_rules.change_rules(yard.model, LOOSE, by=yard.owner)
    gate_rules.change_rules(yard.model, LOOSE.model_copy(update={"latency_p95_ms": 900.0}), by=yard.approver)
    promotion = promotions.request(yard.version(by=yard.owner), stage="production", by=yard.member)
    judge(promotion, GOOD_GATES)
    assert promotion.gates[-1]["name"] == "rules_written_by_others"


def test_gates_that_an_approver_accepted_once_are_not_asked_about_again(yard: Yard) -> None:
    promotions.approve(own_change(yard), accept=["rules_written_by_others"], by=yard.approver)
    again = promotions.request(yard.version(), stage="production", by=yard.owner)
    judge(again, GOOD_GATES)
    assert [gate["name"] for gate in again.gates] == [gate["name"] for gate in GOOD_GATES["gates"]]


def test_an_approval_by_the_person_who_wrote_the_gates_does_not_count_as_a_judgement_of_them(
    yard: Yard,
) -> None:
    gate_rules.change_rules(yard.model, LOOSE, by=yard.owner)
    promotions.approve(yard.pending(), by=yard.owner)
    promotion = promotions.request(yard.version(), stage="production", by=yard.owner)
    judge(promotion, GOOD_GATES)
    assert promotion.gates[-1]["name"] == "rules_written_by_others"


def test_a_change_after_the_request_has_no_part_in_it(yard: Yard) -> None:
    promotion = promotions.request(yard.version(), stage="production", by=yard.owner)
    gate_rules.change_rules(yard.model, LOOSE, by=yard.owner)
    judge(promotion, GOOD_GATES)
    assert promotion.gate_revision is None
    assert len(promotion.gates) == len(GOOD_GATES["gates"])


def test_the_metric_is_the_objective_by_default_and_else_what_the_gates_name() -> None:
    auc = Objective(metric="val_auc", direction="max")
    assert GateRules().metric_for("binary", auc) == ("roc_auc", "max")
    assert GateRules().metric_for("multiclass", Objective()) == ("log_loss", "min")
    assert GateRules().metric_for("regression", Objective()) == ("rmse", "min")
    assert GateRules().metric_for("multiclass", None) == ("accuracy", "max")
    assert GateRules(metric="f1_macro").metric_for("binary", auc) == ("f1_macro", "max")


@pytest.mark.parametrize(
    "rules",
    [
        {"metric": "auroc"}, {"tolerance": -0.1}, {"tolerance": float("nan")}, {"latency_p95_ms": 0},
        {"floors": [{"metric": "accuracy"}]}, {"slices": [{"column": "a", "value": ""}]}, {"delta": 0.1},
        {"floors": [{"metric": "accuracy", "limit": 0.5}, {"metric": "accuracy", "limit": 0.6}]},
        {"slices": [{"column": "a\x00", "value": "b"}]},
    ],
)  # fmt: skip
def test_rules_that_make_no_sense_are_refused(rules: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        GateRules.model_validate(rules)


def test_slices_of_one_value_may_differ_in_their_metric() -> None:
    one = Slice(column="city", value="Paris")
    both = GateRules(slices=(one, one.model_copy(update={"metric": "recall"})))
    assert both.own_gates() == ["slice:city=Paris", "slice:city=Paris:recall"]
