"""Personal pages stay out of shared caches, and browsers ask again before they show a stored one."""

import pytest
from django.test import Client

from tests.people import People, browser_of

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    "path", ["/", "/account/", "/jobs", "/tokens", "/api/v1/me", "/api/v1/jobs", "/nowhere"]
)
def test_pages_and_calls_are_private(people: People, path: str) -> None:
    assert browser_of(people.member).get(path)["Cache-Control"] == "private, no-cache"


@pytest.mark.parametrize(
    "path", ["/accounts/password/change/", "/accounts/2fa/", "/accounts/2fa/totp/activate/"]
)
def test_pages_of_passwords_and_second_factors_are_not_stored(people: People, path: str) -> None:
    assert "no-store" in browser_of(people.member).get(path)["Cache-Control"]


def test_static_files_may_be_shared(client: Client) -> None:
    assert client.get("/static/css/app.css")["Cache-Control"] == "max-age=60, public"
