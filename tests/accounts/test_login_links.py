"""One-time links: who made one never acts as another person where two persons must."""

from collections.abc import Callable
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal.auth import TOTP
from django.core.management import call_command
from django.test import Client

from jobs.actions.people import people as actions
from jobs.models import AuditEvent, User
from tests.accounts.test_login import LOGIN, enter, who
from tests.people import PASSWORD, People, browser_of
from webapp.accounts.login import LINK_ISSUERS

CHOSEN = "a-long-password-of-somebody"
SET = {"password1": CHOSEN, "password2": CHOSEN}


@pytest.fixture
def grace(people: People) -> User:
    """A person whose account was just created."""
    return actions.add_person("grace", by=people.administrator)


def link(user: User, by: User | None) -> str:
    return actions.create_login_link(user, by=by)


def entered(path: str, **form: str) -> Client:
    browser = Client()
    assert browser.post(path, form).status_code == 302
    return browser


def by_password(user: User, password: str = CHOSEN) -> Client:
    browser = Client()
    enter(browser, password, name=user.username)
    assert who(browser) == user.username
    return browser


class TestForAPersonWithAPassword:
    def test_needs_the_password_if_another_person_made_it(self, people: People) -> None:
        path = link(people.member, people.administrator)
        browser = Client()
        asked = browser.get(path).content.decode()
        assert 'name="password"' in asked
        assert "Password lost?" in asked
        for wrong in ({}, {"password": "guessed"}):
            answer = browser.post(path, wrong)
            assert (answer.status_code, who(browser)) == (422, None)
        browser.post(path, {"password": PASSWORD})
        assert who(browser) == "member"

    def test_counts_wrong_passwords_like_every_login(self, people: People) -> None:
        path = link(people.member, people.administrator)
        answers = [Client().post(path, {"password": "guessed"}) for _ in range(7)]
        assert (answers[0].status_code, answers[-1].status_code) == (422, 429)
        assert int(answers[-1]["Retry-After"]) >= 1
        browser = Client()
        browser.post(LOGIN, {"login": "member", "password": PASSWORD})
        assert who(browser) is None

    def test_of_the_operator_needs_none(self, people: People) -> None:
        path = link(people.member, None)
        assert "Password" not in Client().get(path).content.decode()
        assert who(entered(path)) == "member"


class TestAFirstPassword:
    def test_leads_to_the_home_page_which_confirms_it_and_a_change_to_the_account(
        self, people: People, grace: User
    ) -> None:
        browser = entered(link(grace, people.administrator))
        answer = browser.post("/accounts/password/set/", SET)
        assert (answer.status_code, answer["Location"]) == (302, "/")
        assert "Password successfully set." in browser.get("/").content.decode()
        other = "another-long-password"
        entries = {"oldpassword": CHOSEN, "password1": other, "password2": other}
        assert browser.post("/accounts/password/change/", entries)["Location"] == "/account/"
        assert "Password successfully changed." in browser.get("/account/").content.decode()

    def test_keeps_the_mark_of_the_link_in_whose_session_it_was_set(
        self, people: People, grace: User
    ) -> None:
        first = entered(link(grace, people.administrator))
        first.post("/accounts/password/set/", SET)
        assert by_password(grace).session[LINK_ISSUERS] == [people.administrator.pk]

    def test_keeps_it_when_it_is_changed_in_a_session_with_the_mark(
        self, people: People, grace: User
    ) -> None:
        entered(link(grace, people.administrator)).post("/accounts/password/set/", SET)
        other = "another-long-password"
        by_password(grace).post(
            "/accounts/password/change/", {"oldpassword": CHOSEN, "password1": other, "password2": other}
        )
        assert by_password(grace, other).session[LINK_ISSUERS] == [people.administrator.pk]

    def test_has_none_from_a_link_of_the_operator(self, people: People, grace: User) -> None:
        Client().post(link(grace, people.administrator))  # opened, but no password was set
        entered(link(grace, None)).post("/accounts/password/set/", SET)
        assert LINK_ISSUERS not in by_password(grace).session

    def test_of_a_link_that_was_used_is_marked_even_if_the_process_dies_while_it_is_set(
        self, people: People, grace: User
    ) -> None:
        entered(link(grace, people.administrator))
        grace.set_password(CHOSEN)
        grace.save(update_fields=["password"])
        assert by_password(grace).session[LINK_ISSUERS] == [people.administrator.pk]


def test_the_account_page_says_whose_requests_a_person_cannot_decide(people: People, grace: User) -> None:
    entered(link(grace, people.administrator)).post("/accounts/password/set/", SET)
    text = " ".join(by_password(grace).get("/account/").content.decode().split())
    assert f"{people.administrator.username} made the login link" in text
    assert "made the login link" not in browser_of(people.member).get("/account/").content.decode()


@pytest.mark.parametrize("change", [actions.set_active, actions.set_admin])
def test_a_link_of_a_person_who_is_no_administrator_any_more_does_not_enter(
    people: People, grace: User, change: Callable[..., User]
) -> None:
    mallory = actions.add_person("mallory", by=people.administrator, admin=True)
    link_of_mallory = link(grace, mallory)
    change(mallory, False, by=people.administrator)
    assert Client().post(link_of_mallory).status_code == 404
    assert not User.objects.get(pk=grace.pk).password_issuers.exists()
    assert who(entered(link(grace, people.administrator))) == "grace"


def test_a_link_that_was_made_before_a_reset_by_the_operator_does_not_enter(people: People) -> None:
    before = link(people.member, people.administrator)
    call_command("adduser", "member", "--reset")
    assert Client().post(before).status_code == 404
    assert who(entered(link(people.member, people.administrator))) == "member"


def test_a_reset_by_the_operator_removes_password_second_factor_and_sessions(people: People) -> None:
    browser = browser_of(people.member)
    TOTP.activate(people.member, "JBSWY3DPEHPK3PXP")
    RecoveryCodes.activate(people.member)
    call_command("adduser", "member", "--reset")
    people.member.refresh_from_db()
    assert who(browser) is None
    assert not people.member.has_usable_password()
    assert not Authenticator.objects.filter(user=people.member).exists()
    row: Any = AuditEvent.objects.get(action="person.login_reset")
    assert (row.actor, row.detail) == (None, {"name": "member", "second_factor": True})
