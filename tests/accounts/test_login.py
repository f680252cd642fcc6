"""One login: every way in has the same limit of guesses, the same second factor and leaves audit rows."""

from datetime import timedelta
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal import auth as totp
from django.contrib.auth import authenticate
from django.core.cache import cache
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from jobs.actions.people import logins
from jobs.actions.people.people import create_login_link
from jobs.errors import TooManyAttempts
from jobs.models import AuditEvent, LoginAttempts, User
from tests.people import PASSWORD, People, browser_of
from webapp.accounts.login import LINK_ISSUERS

SECRET = "JBSWY3DPEHPK3PXP"
LOGIN = "/accounts/login/"
CODE = "/accounts/2fa/authenticate/"


@pytest.fixture(autouse=True)
def one_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep an authenticator app's code the same, however long a test takes."""
    monkeypatch.setattr(totp, "yield_hotp_counters_from_time", lambda: iter([1000]))


def enter(
    browser: Client, password: str = PASSWORD, *, name: str = "member", address: str = "10.0.0.1"
) -> Any:
    return browser.post(LOGIN, {"login": name, "password": password}, REMOTE_ADDR=address)


def who(browser: Client) -> str | None:
    name: str | None = browser.get("/account/session").json()["user"]
    return name


def wait(seconds: float) -> None:
    """Act as if so much time had passed."""
    for row in LoginAttempts.objects.exclude(blocked_until=None):
        assert row.blocked_until is not None
        row.blocked_until -= timedelta(seconds=seconds)
        row.save()


def rows(action: str) -> list[dict[str, Any]]:
    events = AuditEvent.objects.filter(action=f"person.{action}").order_by("pk")
    return [event.detail | {"by": event.actor.username if event.actor else None} for event in events]


def guess(count: int, **headers: Any) -> None:
    for _ in range(count):
        wait(1000)
        enter(Client(), "wrong", **headers)


def with_app(user: User) -> User:
    totp.TOTP.activate(user, SECRET)
    RecoveryCodes.activate(user)
    return user


def code() -> str:
    cache.clear()
    return totp.format_hotp_value(totp.hotp_value(SECRET, next(totp.yield_hotp_counters_from_time())))


class TestGuesses:
    def test_of_a_password_wait_longer_each_time_and_the_right_one_is_refused_meanwhile(
        self, people: People
    ) -> None:
        guess(7)
        browser = Client()
        refused = enter(browser, address="10.9.9.9")
        assert "Try again in 4 seconds" in refused.content.decode()
        assert (refused.status_code, refused["Retry-After"]) == (429, "4")
        assert who(browser) is None
        wait(4)
        assert enter(browser).status_code == 302
        assert who(browser) == "member"
        assert [row["delay_seconds"] for row in rows("login_failed")] == [0, 0, 0, 0, 1, 2, 4]

    def test_from_one_address_wait_whichever_names_are_tried(self, people: People) -> None:
        for number in range(31):
            wait(1000)
            enter(Client(), "wrong", name=f"name{number}", address="2001:db8::1")
        again = enter(Client(), address="2001:db8::ffff")
        assert "too many failed attempts" in again.content.decode()
        assert enter(Client(), address="2001:db9::1").status_code == 302

    def test_from_ipv4_addresses_in_their_ipv6_form_wait_apart(self, people: People) -> None:
        for number in range(36):
            wait(1000)
            enter(Client(), "wrong", name=f"name{number}", address="::ffff:192.0.2.1")
        assert enter(Client(), "wrong", name="another", address="192.0.2.1").status_code == 429
        assert enter(Client(), address="::ffff:192.0.2.2").status_code == 302

    def test_from_all_addresses_of_this_machine_wait_together(self, people: People) -> None:
        for number in range(36):
            wait(1000)
            enter(Client(), "wrong", name=f"name{number}", address=f"127.0.0.{number + 1}")
        assert enter(Client(), address="127.9.9.9").status_code == 429

    def test_are_limited_wherever_the_password_is_checked(self, people: People) -> None:
        browser = browser_of(people.member)
        change = {"oldpassword": "wrong", "password1": "another-long-one", "password2": "another-long-one"}
        for _ in range(5):
            browser.post("/accounts/password/change/", change)
        for path in ("/accounts/reauthenticate/", "/accounts/password/change/"):
            answer = browser.post(path, {**change, "password": PASSWORD, "oldpassword": PASSWORD})
            assert "too many failed attempts" in answer.content.decode(), path
            assert answer.status_code == 429, path
        with pytest.raises(TooManyAttempts):
            authenticate(None, username="Member", password=PASSWORD)

    def test_of_a_code_are_limited_although_the_password_was_right(self, people: People) -> None:
        with_app(people.member)
        browser = Client()
        for _ in range(5):
            enter(browser)
            browser.post(CODE, {"code": "000000"})
        enter(browser)
        refused = browser.post(CODE, {"code": code()})
        assert "too many failed attempts" in refused.content.decode()
        assert refused.status_code == 429
        assert who(browser) is None
        assert {row["step"] for row in rows("login_failed")} == {"code"}

    def test_that_end_in_time_are_forgotten(self, people: People) -> None:
        guess(4)
        LoginAttempts.objects.update(last=timezone.now() - timedelta(hours=25))
        guess(1)
        assert [row["delay_seconds"] for row in rows("login_failed")] == [0] * 5

    def test_of_unknown_names_leave_no_name_in_the_log(self, people: People) -> None:
        enter(Client(), name="my-password-by-mistake")
        (event,) = AuditEvent.objects.filter(action="person.login_failed")
        assert event.target == "person:unknown"
        assert "mistake" not in str(AuditEvent.objects.values()) + str(LoginAttempts.objects.values())


class TestTheSecondFactor:
    def test_is_asked_for_and_accepts_a_code_once(self, people: People) -> None:
        with_app(people.member)
        browser, thief = Client(), Client()
        used = code()
        for visitor in (browser, thief):
            enter(visitor)
            assert who(visitor) is None
            cache.clear()  # as another web process, which has not seen the code
            visitor.post(CODE, {"code": used})
        assert [who(browser), who(thief)] == ["member", None]
        (row,) = rows("login")
        assert (row["how"], row["second_factor"]) == ("password", True)

    def test_is_asked_for_after_a_link_and_keeps_who_made_it(self, people: People) -> None:
        with_app(people.member)
        link = link_for_member(people)
        browser = Client()
        browser.post(link, {"password": PASSWORD})
        assert who(browser) is None
        browser.post(CODE, {"code": code()})
        assert browser.session[LINK_ISSUERS] == [people.administrator.pk]
        assert (rows("login_link_used")[0]["issuer"], rows("login")[0]["how"]) == ("administrator", "link")

    def test_may_be_a_recovery_code_which_leaves_a_row(self, people: People) -> None:
        with_app(people.member)
        recovery = Authenticator.objects.get(user=people.member, type="recovery_codes").wrap()
        browser = Client()
        enter(browser)
        browser.post(CODE, {"code": recovery.get_unused_codes()[0]})
        assert who(browser) == "member"
        assert rows("recovery_code_used")[0]["by"] == "member"

    def test_has_no_secret_in_clear_in_the_database_and_no_code_fits_another_key(
        self, people: People, settings: Settings
    ) -> None:
        with_app(people.member)
        app, recovery = Authenticator.objects.order_by("-type")
        assert SECRET not in str(app.data)
        assert app.wrap().validate_code(code())
        (unused, *_) = recovery.wrap().get_unused_codes()
        settings.SECRET_KEY = "x" * 60
        assert not app.wrap().validate_code(code())
        assert not recovery.wrap().validate_code(unused)

    def test_of_an_earlier_version_still_works(self, people: People) -> None:
        app = Authenticator.objects.get(user=with_app(people.member), type="totp")
        app.data = {"secret": SECRET}
        assert app.wrap().validate_code(code())


def link_for_member(people: People) -> str:
    return create_login_link(people.member, by=people.administrator)


class TestSessions:
    def test_of_a_password_do_not_carry_the_issuer_of_an_earlier_link(self, people: People) -> None:
        browser = Client()
        browser.post(link_for_member(people), {"password": PASSWORD})
        assert browser.session[LINK_ISSUERS] == [people.administrator.pk]
        browser.post("/accounts/logout/")
        enter(browser)
        assert LINK_ISSUERS not in browser.session
        assert [row["how"] for row in rows("login")] == ["link", "password"]
        assert rows("logout")[0]["by"] == "member"

    def test_end_in_other_browsers_when_the_password_changes(self, people: People) -> None:
        browser, other = browser_of(people.member), browser_of(people.member)
        new = "another-long-one"
        change = {"oldpassword": PASSWORD, "password1": new, "password2": new}
        browser.post("/accounts/password/change/", change)
        assert [who(browser), who(other)] == ["member", None]
        assert people.member.sessions.count() == 1
        assert rows("password")[0]["by"] == "member"

    def test_end_in_other_browsers_when_the_second_factor_changes(
        self, people: People, django_capture_on_commit_callbacks: Any
    ) -> None:
        browser, other = browser_of(people.member), browser_of(people.member)
        browser.post("/accounts/reauthenticate/", {"password": PASSWORD})
        browser.get("/accounts/2fa/totp/activate/")
        secret = browser.session[totp.SECRET_SESSION_KEY]
        now = next(totp.yield_hotp_counters_from_time())
        right = totp.format_hotp_value(totp.hotp_value(secret, now))
        with django_capture_on_commit_callbacks(execute=True):
            browser.post("/accounts/2fa/totp/activate/", {"code": right})
        assert [who(browser), who(other)] == ["member", None]
        with django_capture_on_commit_callbacks(execute=True):
            browser.post("/accounts/2fa/totp/deactivate/")
        assert rows("second_factor_on")
        assert rows("second_factor_off")


def test_a_used_link_that_is_used_again_leaves_a_row(people: People) -> None:
    link = link_for_member(people)
    Client().post(link, {"password": PASSWORD})
    for _ in range(3):
        assert Client().post(link).status_code == 404
    assert [(row["name"], row["step"]) for row in rows("login_failed")] == [("member", "link")]


def test_parallel_guesses_are_counted_before_they_are_checked(people: People) -> None:
    guess(4)
    with logins.attempt("password", "member", address=""), pytest.raises(TooManyAttempts):
        enter_in_parallel()


def enter_in_parallel() -> None:
    with logins.attempt("password", "member", address=""):
        pytest.fail("the second guess began while the first was checked")
