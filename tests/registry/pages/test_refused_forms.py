"""A form that is refused is shown again on its page: the reason beside the field, and all entries."""

from typing import Any

import pytest

from jobs.actions.registry import promotions, releases
from jobs.models import Alias
from tests.markup import one_line
from tests.people import browser_of
from tests.present import present
from tests.registry.conftest import Yard

REASON = "wrong answers on sevens"


def section(answer: Any, label: str) -> str:
    """Return the markup of one card on a page."""
    return one_line(answer).split(f'aria-label="{label}"')[1].split("</section>")[0]


def test_a_rollback_keeps_a_reason_that_is_too_long(yard: Yard) -> None:
    yard.live()
    yard.live()
    long = REASON * 100
    answer = browser_of(yard.approver).post("/models/digits/rollback", {"reason": long})
    assert answer.status_code == 422
    card = section(answer, "Roll back")
    assert f'value="{long}"' in card
    assert "Ensure this value has at most 2000 characters" in card.split("id_reason-hint")[-1]
    assert present(yard.endpoint.production).number == 2


def test_the_live_update_of_the_page_leaves_a_refused_form_alone(yard: Yard) -> None:
    yard.live()
    followed = "#endpoint-changes:outerMorph"
    browser = browser_of(yard.approver)
    assert followed in one_line(browser.get("/endpoints/digits"))
    refused = one_line(browser.post("/models/digits/down", {"reason": " "}))
    assert followed not in refused
    assert 'hx-get="/endpoints/digits?part=now&amp;keep=changes"' in refused
    assert followed not in one_line(browser.get("/endpoints/digits?part=now&keep=changes"))


def test_a_rollback_that_is_not_possible_any_more_keeps_the_reason(yard: Yard) -> None:
    yard.live()
    answer = browser_of(yard.approver).post("/models/digits/rollback", {"reason": REASON})
    assert answer.status_code == 409
    card = section(answer, "Roll back")
    assert "no earlier production version to roll back to" in card
    assert f'value="{REASON}"' in card


def test_taking_down_an_endpoint_that_is_down_keeps_the_reason(yard: Yard) -> None:
    yard.live()
    releases.take_down(yard.endpoint, reason="first", by=yard.second_approver)
    answer = browser_of(yard.approver).post("/models/digits/down", {"reason": REASON})
    assert answer.status_code == 409
    card = section(answer, "Bring up")
    assert "digits is down: bring it up first." in card
    assert f'value="{REASON}"' in card


def test_taking_down_without_a_reason_is_refused_at_its_own_field(yard: Yard) -> None:
    yard.live()
    answer = browser_of(yard.approver).post("/models/digits/down", {"reason": "  "})
    assert answer.status_code == 422
    assert "This field is required" in section(answer, "Take down").split("down_reason-hint")[-1]
    assert "This field is required" not in section(answer, "Roll back")
    assert not yard.endpoint.is_down


@pytest.mark.parametrize("path", ["rollback", "down"])
def test_an_endpoint_that_serves_nothing_keeps_the_reason(yard: Yard, path: str) -> None:
    answer = browser_of(yard.approver).post(f"/models/digits/{path}", {"reason": REASON})
    assert answer.status_code == 409
    assert f'value="{REASON}"' in one_line(answer)


def test_an_alias_with_a_reserved_name_keeps_the_name_and_the_version(yard: Yard) -> None:
    yard.live()
    yard.live()
    answer = browser_of(yard.member).post("/models/digits/aliases", {"alias": "latest", "version": "1"})
    assert answer.status_code == 422
    card = section(answer, "Aliases")
    assert "reserved for the endpoint; choose another name" in card.split("id_alias-hint")[-1]
    assert 'value="latest"' in card
    assert '<option value="1" selected>' in card
    assert not Alias.objects.exists()


def test_an_alias_of_a_version_that_does_not_exist_is_refused_at_the_version(yard: Yard) -> None:
    yard.live()
    answer = browser_of(yard.member).post("/models/digits/aliases", {"alias": "best", "version": "9"})
    assert answer.status_code == 422
    assert "9 is not one of the available choices" in section(answer, "Aliases").split("id_version-hint")[-1]


def test_a_promotion_that_is_requested_already_keeps_the_stage_and_the_comment(yard: Yard) -> None:
    version = yard.version()
    twin = promotions.request(version, stage="staging", by=yard.owner)
    answer = browser_of(yard.member).post(
        f"/models/digits/versions/{version.number}/promote", {"stage": "staging", "comment": REASON}
    )
    assert answer.status_code == 409
    card = section(answer, "Promotion")
    assert f"Request {twin.pk} for the same version and stage is gating." in card
    assert f"{REASON}</textarea>" in card
    assert '<option value="staging" selected>' in card


def test_a_card_that_is_too_long_keeps_its_text(yard: Yard) -> None:
    version = yard.version()
    path = f"/models/digits/versions/{version.number}/card"
    long = "intended use " * 10_000
    answer = browser_of(yard.member).post(path, {"card": long})
    assert answer.status_code == 422
    card = section(answer, "Model card")
    assert "at most 100000 characters" in card.split("id_card-hint")[-1]
    assert long.strip() in card
    assert "data-unsaved" in card


ADDRESSES = {
    "rollback": "/endpoints/digits",
    "down": "/endpoints/digits",
    "aliases": "/models/digits",
    "versions/1/promote": "/models/digits/versions/1",
    "versions/1/card": "/models/digits/versions/1?tab=card",
}


@pytest.mark.parametrize("path", ADDRESSES)
def test_the_page_of_a_refused_form_can_be_reloaded(yard: Yard, path: str) -> None:
    yard.version()
    answer = browser_of(yard.owner).get(f"/models/digits/{path}")
    assert (answer.status_code, answer.headers["Location"]) == (303, ADDRESSES[path])


def test_a_viewer_gets_no_form_back(yard: Yard) -> None:
    yard.live()
    answer = browser_of(yard.viewer).post("/models/digits/down", {"reason": ""})
    assert answer.status_code == 403
