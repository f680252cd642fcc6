import re
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pytest_django import DjangoAssertNumQueries

from jobs.actions.registry import promotions
from jobs.models import PromotionRequest, User
from tests import factories
from tests.markup import one_line, text_of
from tests.module_rows import ModuleRows
from tests.people import browser_of
from tests.present import present
from tests.registry.conftest import OPEN_GATES, Yard, judge, make_yard, see


def make_filled(folder: Path) -> Yard:
    """Release two versions and request a third one's promotion."""
    yard = make_yard(folder)
    yard.live()
    yard.live()
    yard.pending()
    return yard


@pytest.fixture(scope="module")
def module_yard(module_rows: ModuleRows, tmp_path_factory: pytest.TempPathFactory) -> Yard:
    folder = tmp_path_factory.mktemp("versions")
    return module_rows(lambda: make_filled(folder))


@pytest.fixture
def filled(module_yard: Yard, db: None) -> Yard:
    return deepcopy(module_yard)


PAGES = (
    "/models",
    "/models/digits",
    "/models/digits/gates",
    "/models/digits/versions/1",
    "/approvals",
    "/approvals/3",
    "/endpoints",
    "/endpoints/digits",
)


def statuses(user: User, *paths: str) -> dict[str, int]:
    latest = PromotionRequest.objects.latest("pk").pk
    return {path: see(user, path.replace("/3", f"/{latest}")).status_code for path in paths}


@pytest.mark.parametrize("who", ["owner", "member", "approver", "viewer"])
def test_everyone_in_the_project_sees_every_page(filled: Yard, who: str) -> None:
    assert statuses(getattr(filled, who), *PAGES) == dict.fromkeys(PAGES, 200)


@pytest.mark.parametrize(
    ("path", "region"),
    [
        ("/models", "Models"),
        ("/models/digits", "Versions"),
        ("/models/digits", "History"),
        ("/approvals?view=all", ""),
    ],
)
def test_each_cell_has_the_name_of_its_column_for_phones(filled: Yard, path: str, region: str) -> None:
    page = see(filled.approver, path).content.decode()
    part = page.split(f'aria-label="{region}"')[1] if region and f'aria-label="{region}"' in page else page
    table = part.split("ty-named-cells")[1].split("</table>")[0]
    heads = [one_line_of(head) for head in re.findall(r"<th\b[^>]*>(.*?)</th>", table, re.DOTALL)]
    rows = table.split("<tbody>")[1].split("</tr>")[:-1]
    assert rows
    for row in rows:
        names = re.findall(r'<td\b[^>]*\bdata-column="([^"]*)"', row)
        assert len(names) == len(re.findall(r"<td\b", row)) == len(heads)
        assert [name.replace(",", "") for name in names] == heads


def one_line_of(markup: str) -> str:
    """Return the text in markup, in one line."""
    return " ".join(re.sub(r"<[^>]*>", " ", markup).split())


@pytest.mark.parametrize(
    ("lineage", "hyperparameters"),
    [
        ({}, []),
        ({"uploaded_by": "member"}, []),
        ({"trial": 2, "values": {"units": 32, "items": 8}}, ["units 32", "items 8"]),
    ],
)
def test_the_page_of_a_version_shows_the_hyperparameters_of_its_training_if_it_knows_them(
    filled: Yard, lineage: dict[str, Any], hyperparameters: list[str]
) -> None:
    version = filled.model.versions.order_by("number")[0]
    type(version).objects.filter(pk=version.pk).update(lineage=lineage)
    answer = see(filled.viewer, f"/models/digits/versions/{version.number}", tab="overview")
    assert answer.status_code == 200
    assert all(pair in text_of(answer) for pair in hyperparameters)
    type(version).objects.filter(pk=version.pk).update(metrics={})
    without = text_of(see(filled.viewer, f"/models/digits/versions/{version.number}", tab="overview"))
    assert "Metrics No metrics came with this version." in without


def test_a_stranger_finds_no_page_of_the_project(filled: Yard) -> None:
    of_project = [path for path in PAGES if path.count("/") > 1]
    assert statuses(filled.stranger, *of_project) == dict.fromkeys(of_project, 404)


@pytest.mark.parametrize("tab", ["overview", "evaluation", "model", "try", "use", "card", "files"])
def test_every_tab_of_a_version_opens(filled: Yard, tab: str) -> None:
    assert see(filled.member, "/models/digits/versions/2", tab=tab).status_code == 200


def test_the_inbox_holds_what_the_caller_may_decide(filled: Yard) -> None:
    assert b"Nothing to approve" in see(filled.member, "/approvals").content
    assert "Request " in text_of(see(filled.approver, "/approvals"))


def test_the_requester_sees_why_there_are_no_buttons(filled: Yard) -> None:
    promotion = promotions.request(filled.version(), stage="staging", by=filled.owner)
    page = see(filled.owner, f"/approvals/{promotion.pk}").content.decode()
    assert "Another person must decide" in page
    part = page.split("<main")[1].split('aria-label="Decide"')[1].split("</section>")[0]
    assert "approver or second-approver could decide it." in part
    assert "Approve" not in part
    assert "/approve" not in part


def test_an_open_request_offers_approval_as_soon_as_its_gates_have_passed(filled: Yard) -> None:
    promotion = promotions.request(filled.version(), stage="staging", by=filled.owner)
    browser, part = browser_of(filled.approver), {"part": "decide", "was": "gating"}
    live: dict[str, Any] = {"query_params": part, "headers": {"HX-Request": "true"}}
    path = f"/approvals/{promotion.pk}"
    assert "part=decide&amp;was=gating" in browser.get(path).content.decode()
    assert browser.get(path, **live).status_code == 204
    judge(promotion, OPEN_GATES)
    card = browser.get(path, **live).content.decode()
    assert "Approve" in card
    assert "<main" not in card


def test_an_open_page_of_a_request_follows_its_approval(filled: Yard) -> None:
    waiting = PromotionRequest.objects.latest("pk")
    browser, path = browser_of(filled.owner), f"/approvals/{waiting.pk}"
    page = browser.get(path).content.decode()
    before_card, card = page.split("<main")[1].split('aria-label="Decide"')
    assert "expires" not in before_card.lower(), "it would stay there after the decision"
    assert "expires" in card

    def part(name: str, was: str) -> Any:
        query = {"part": name, "was": was}
        return browser.get(path, query_params=query, headers={"HX-Request": "true"})

    before = (("gates", "pending"), ("decide", "pending"), ("thread", "0"))
    for name, was in before:
        assert f"part={name}&amp;was={was}" in page
        assert part(name, was).status_code == 204, "nothing has changed"
    promotions.approve(waiting, comment="well done", by=filled.approver)
    gates, outcome, thread = (part(name, was) for name, was in before)
    assert "part=gates&amp;was" not in gates.content.decode(), "they run no more"
    assert "approved" in outcome.content.decode()
    assert "well done" in thread.content.decode()
    assert "Released as generation" in outcome.content.decode()
    assert "expires" not in outcome.content.decode()
    assert "This request is now approved." in outcome.headers["HX-Trigger"]


def test_approving_on_the_page_releases(filled: Yard) -> None:
    waiting = PromotionRequest.objects.latest("pk")
    answer = browser_of(filled.approver).post(f"/approvals/{waiting.pk}/approve", {"comment": "fine"})
    assert answer.status_code == 303
    assert filled.endpoint.production == waiting.version


def test_open_gates_are_check_boxes(filled: Yard) -> None:
    promotion = filled.request(stage="staging")
    judge(promotion, OPEN_GATES)
    browser = browser_of(filled.approver)
    assert 'name="accept" value="test_metric"' in one_line(browser.get(f"/approvals/{promotion.pk}"))
    assert browser.post(f"/approvals/{promotion.pk}/approve", {}).status_code == 409
    accepted = browser.post(f"/approvals/{promotion.pk}/approve", {"accept": "test_metric"})
    assert accepted.status_code == 303


@pytest.mark.parametrize("verb", ["approve", "reject"])
def test_a_decision_that_comes_too_late_keeps_the_comment_for_the_thread(filled: Yard, verb: str) -> None:
    promotion = filled.pending()
    promotions.approve(promotion, by=filled.second_approver)
    answer = browser_of(filled.approver).post(
        f"/approvals/{promotion.pk}/{verb}", {"comment": "I saw it fail on sevens"}
    )
    assert answer.status_code == 409
    assert "is approved" in text_of(answer)
    thread = one_line(answer).split('aria-label="Thread"')[1].split("</section>")[0]
    assert ">I saw it fail on sevens</textarea>" in thread


def test_an_approval_without_the_open_gates_keeps_the_comment_and_the_boxes(filled: Yard) -> None:
    promotion = filled.request(stage="staging")
    judge(promotion, {"gates": [*OPEN_GATES["gates"], {"name": "latency", "state": "not_evaluated"}]})
    fields = {"comment": "small data set", "accept": "latency"}
    answer = browser_of(filled.approver).post(f"/approvals/{promotion.pk}/approve", fields)
    assert answer.status_code == 409
    card = one_line(answer).split('aria-label="Decide"')[1].split("</section>")[0]
    assert "small data set</textarea>" in card
    assert 'value="latency" checked' in card
    assert 'value="test_metric" checked' not in card


def test_a_longer_list_of_endpoints_takes_no_more_queries(
    filled: Yard, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    browser, path = browser_of(filled.member), "/endpoints?all=1"
    browser.get(path)
    with CaptureQueriesContext(connection) as few:
        browser.get(path)
    for number in range(3):
        factories.make_model(f"more-{number}", project=filled.model.project, by=filled.member)
    with django_assert_max_num_queries(len(few)):
        assert "more-2" in text_of(browser.get(path))


def test_a_decided_request_shows_what_it_replaced(filled: Yard) -> None:
    before, promotion = filled.endpoint.production, filled.pending()
    assert before is not None
    promotions.approve(promotion, by=filled.approver)
    page = browser_of(filled.approver).get(f"/approvals/{promotion.pk}").content.decode()
    moved = page[page.index('class="ty-move"') :].split("</p>")[0]
    assert f">v{before.number}<" in moved
    assert f">v{promotion.version.number}<" in moved


def test_rolling_back_on_the_page_needs_a_reason(filled: Yard) -> None:
    browser = browser_of(filled.approver)
    page = browser.get("/models/digits").content.decode()
    assert "Roll digits back to v1?" in page
    assert browser.post("/models/digits/rollback", {"reason": ""}).status_code == 422
    assert browser.post("/models/digits/rollback", {"reason": "bad"}).status_code == 303
    assert present(filled.endpoint.production).number == 1


def test_a_viewer_cannot_roll_back_or_request_a_promotion(filled: Yard) -> None:
    browser = browser_of(filled.viewer)
    assert browser.post("/models/digits/rollback", {"reason": "x"}).status_code == 403
    assert browser.post("/models/digits/versions/1/promote", {"stage": "production"}).status_code == 403


def test_a_promotion_is_requested_on_the_versions_page(filled: Yard) -> None:
    version = filled.version()
    path = f"/models/digits/versions/{version.number}"
    answer = browser_of(filled.member).post(f"{path}/promote", {"stage": "production", "comment": "new"})
    assert answer.status_code == 303
    assert answer["Location"] == f"/approvals/{PromotionRequest.objects.latest('pk').pk}"
