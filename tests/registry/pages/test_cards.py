"""Two people edit a version's card: the second is warned, and loses nothing."""

from typing import Any

import pytest
from django.test import Client

from jobs.actions.registry import registry
from jobs.models import ModelVersion
from tests.markup import one_line, text_of
from tests.people import browser_of
from tests.registry.conftest import Yard

PAGE = "/models/digits/versions/1"
REST = "/api/v1/models/digits/versions/1"


@pytest.fixture
def version(yard: Yard) -> ModelVersion:
    return yard.version()


@pytest.fixture
def browser(yard: Yard) -> Client:
    return browser_of(yard.member)


def opened(answer: Any) -> dict[str, str]:
    """Return the form fields as a page shows them."""
    form = answer.context["card_form"]
    return {name: form[name].value() for name in form.fields}


def change(browser: Client, card: str, **headers: str) -> Any:
    return browser.patch(REST, {"card": card}, content_type="application/json", headers=headers)


def test_a_card_that_another_person_saved_meanwhile_is_shown_beside_mine(
    yard: Yard, version: ModelVersion, browser: Client
) -> None:
    fields = opened(browser.get(f"{PAGE}?tab=card"))
    registry.write_card(version, "for digits only", by=yard.owner)
    answer = browser.post(f"{PAGE}/card", fields | {"card": "not for letters"})
    assert answer.status_code == 409
    assert "The card of digits v1 was changed in the meantime" in text_of(answer)
    assert "for digits only" in text_of(answer)
    assert "not for letters</textarea>" in one_line(answer)
    version.refresh_from_db()
    assert version.card == "for digits only"
    assert browser.post(f"{PAGE}/card", opened(answer)).status_code == 303
    version.refresh_from_db()
    assert version.card == "not for letters"


def test_rest_refuses_a_card_under_an_old_etag(version: ModelVersion, browser: Client) -> None:
    tag = browser.get(REST).headers["ETag"]
    first = change(browser, "for digits only", **{"If-Match": tag})
    assert first.status_code == 200
    assert change(browser, "not for letters", **{"If-Match": tag}).status_code == 412
    version.refresh_from_db()
    assert version.card == "for digits only"
    assert change(browser, "not for letters", **{"If-Match": first.headers["ETag"]}).status_code == 200


def test_rest_without_if_match_accepts_any_card(version: ModelVersion, browser: Client) -> None:
    for card in ("for digits only", "not for letters"):
        assert change(browser, card).status_code == 200
    version.refresh_from_db()
    assert version.card == "not for letters"
