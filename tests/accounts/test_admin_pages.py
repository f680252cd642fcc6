"""Django's admin changes nothing by itself, and shows no secret."""

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal.auth import TOTP
from django.contrib import admin
from django.test import Client

from jobs.actions.people import tokens
from tests.people import People, browser_of
from webapp.admin_read_only import ReadOnlyAdmin


@pytest.fixture
def browser(people: People) -> Client:
    """An administrator's browser."""
    return browser_of(people.administrator)


def test_every_page_of_the_admin_is_read_only() -> None:
    writable = [
        str(model._meta)
        for model, page in admin.site._registry.items()
        if not isinstance(page, ReadOnlyAdmin)
    ]
    assert admin.site._registry
    assert not writable


def test_an_administrator_does_not_change_the_second_factor_of_another_person(
    people: People, browser: Client
) -> None:
    authenticator = TOTP.activate(people.administrator, "JBSWY3DPEHPK3PXP").instance
    theirs = TOTP.activate(people.approver, "JBSWY3DPEHPK3PXQ").instance
    form = {"user": people.member.pk, "type": "totp", "data": str(authenticator.data).replace("'", '"')}
    browser.post("/admin/mfa/authenticator/add/", form)
    browser.post(f"/admin/mfa/authenticator/{theirs.pk}/delete/", {"post": "yes"})
    assert {row.user_id for row in Authenticator.objects.all()} == {
        people.administrator.pk,
        people.approver.pk,
    }


@pytest.mark.parametrize("start", ["", "argon2", "md5", "pbkdf2"])
def test_a_list_is_not_filtered_by_the_hash_of_a_password(browser: Client, start: str) -> None:
    answer = browser.get(f"/admin/jobs/user/?password__startswith={start}")
    assert answer.status_code == 400


@pytest.mark.parametrize("path", ["apitoken/?digest", "loginlink/?digest", "session/?session_key"])
def test_a_list_is_not_filtered_by_the_hash_of_another_secret(
    people: People, browser: Client, path: str
) -> None:
    tokens.create(people.member, by=people.member, scopes=["read"])
    assert browser.get(f"/admin/jobs/{path}__startswith=0").status_code == 400


def test_a_list_is_filtered_by_fields_that_it_shows(browser: Client) -> None:
    answer = browser.get("/admin/jobs/user/?username__startswith=app")
    assert answer.status_code == 200
    assert b">approver<" in answer.content
    assert b">member<" not in answer.content
