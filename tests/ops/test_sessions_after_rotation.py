"""People stay logged in while `rotate-keys` replaces the secret key, with all requests that are under way."""

from pathlib import Path

import pytest
from django.conf import settings
from django.contrib.auth import HASH_SESSION_KEY
from django.test import Client

from jobs.actions.people import people as accounts
from jobs.keys import key_ring
from jobs.keys.secret_keys import SecretKeys
from jobs.session_store import SessionStore
from tests.ops.rotations import OLD, key_file, restart, rotate
from tests.people import People, browser_of
from webapp.accounts.session_user import user_of
from webapp.limits import callers

pytestmark = pytest.mark.django_db

file = pytest.fixture(key_file)


def test_sessions_go_on_until_the_overlap_ends(people: People, file: Path) -> None:
    browser = browser_of(people.member)
    rotate("--overlap", "1h")
    restart(file)
    assert browser.get("/account/session").json()["user"] == "member"
    other = browser_of(people.owner)
    key_ring.use(SecretKeys(settings.SECRET_KEY))
    assert other.get("/account/session").json()["user"] == "owner"


def cookie_of(browser: Client) -> str:
    value: str = browser.cookies[settings.SESSION_COOKIE_NAME].value
    return value


def who(cookie: str) -> str | None:
    """Return the user whom a request with this session cookie has, as one of several parallel ones."""
    browser = Client()
    browser.cookies[settings.SESSION_COOKIE_NAME] = cookie
    answer = browser.get("/account/session")
    assert settings.SESSION_COOKIE_NAME not in answer.cookies
    name: str | None = answer.json()["user"]
    return name


def test_parallel_requests_with_one_cookie_stay_logged_in(people: People, file: Path) -> None:
    cookie = cookie_of(browser_of(people.member))
    rotate("--overlap", "1h")
    restart(file)
    assert [who(cookie) for _ in range(6)] == ["member"] * 6
    # The session was renewed: it needs the former key no more.
    key_ring.use(SecretKeys(settings.SECRET_KEY))
    assert who(cookie) == "member"


def test_a_request_whose_sender_is_found_before_its_body_is_read_stays_logged_in(
    people: People, file: Path
) -> None:
    cookie = cookie_of(browser_of(people.member))
    rotate()
    caller = callers._find_caller({b"cookie": f"{settings.SESSION_COOKIE_NAME}={cookie}"})
    assert caller is not None
    assert caller.user == people.member
    assert who(cookie) == "member"


def test_a_renewed_session_keeps_what_another_request_changes_meanwhile(people: People, file: Path) -> None:
    cookie = cookie_of(browser_of(people.member))
    rotate()
    slow, quick = SessionStore(cookie), SessionStore(cookie)
    assert user_of(slow) == people.member
    quick["color"] = "blue"
    quick.save()
    slow.replace(HASH_SESSION_KEY, people.member.get_session_auth_hash())
    assert not slow.modified
    assert SessionStore(cookie)["color"] == "blue"
    assert who(cookie) == "member"


def test_a_session_that_ended_meanwhile_is_not_renewed(people: People, file: Path) -> None:
    cookie = cookie_of(browser_of(people.member))
    rotate()
    session = SessionStore(cookie)
    assert user_of(session) == people.member
    accounts.end_sessions(people.member)
    session.replace(HASH_SESSION_KEY, people.member.get_session_auth_hash())
    assert who(cookie) is None


def test_a_server_that_has_not_learned_the_key_knows_sessions_of_one_that_has(
    people: People, file: Path
) -> None:
    cookie = cookie_of(browser_of(people.member))
    rotate()
    assert who(cookie) == "member"
    key_ring.use(SecretKeys(OLD))
    assert who(cookie) == "member"
    assert settings.SECRET_KEY != OLD


def test_a_session_of_the_former_key_ends_with_the_overlap(people: People, file: Path) -> None:
    browser = browser_of(people.member)
    rotate("--overlap", "0m")
    restart(file)
    assert browser.get("/account/session").json()["user"] is None


def test_a_live_connection_knows_sessions_of_the_former_key(people: People, file: Path) -> None:
    session = dict(browser_of(people.member).session)
    rotate()
    assert user_of(session) == people.member
    people.member.set_password("another-password-9")
    people.member.save()
    assert not user_of(session).is_authenticated
