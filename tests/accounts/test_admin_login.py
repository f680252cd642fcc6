"""Django's admin has no login of its own."""

from urllib.parse import parse_qs, urlsplit

import pytest
from django.test import Client

from tests.people import PASSWORD, People, browser_of

LOGIN = {"username": "administrator", "password": PASSWORD, "next": "/admin/"}


@pytest.mark.parametrize("method", ["get", "post"])
def test_the_login_of_the_admin_leads_to_the_login_page_and_starts_no_session(
    people: People, client: Client, method: str
) -> None:
    answer = getattr(client, method)("/admin/login/?next=/admin/jobs/job/", LOGIN)
    location = urlsplit(answer["Location"])
    assert (answer.status_code, location.path) == (302, "/accounts/login/")
    assert client.get("/account/session").json()["user"] is None
    if method == "post":
        assert parse_qs(location.query) == {"next": ["/admin/jobs/job/"]}


def test_one_session_cannot_enter_as_another_person_through_the_admin(people: People) -> None:
    people.owner.is_staff = True
    people.owner.save(update_fields=["is_staff"])
    browser = browser_of(people.owner)
    assert browser.post("/admin/login/", LOGIN)["Location"] == "/admin/"
    assert browser.get("/account/session").json()["user"] == "owner"


def test_a_person_who_is_not_of_the_staff_is_refused_instead_of_asked_again(people: People) -> None:
    assert browser_of(people.member).get("/admin/", follow=True).status_code == 403


def test_the_admin_changes_no_password(people: People) -> None:
    browser = browser_of(people.administrator)
    assert browser.post("/admin/password_change/")["Location"] == "/accounts/password/change/"
