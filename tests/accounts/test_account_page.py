"""Account names the ways to log in, and the page of people names the persons that a login link connects."""

import re

from tests.markup import text_of
from tests.people import People, browser_of


def test_a_password_is_enough_only_where_one_is_set(people: People) -> None:
    assert "the password alone is enough" in text_of(browser_of(people.member).get("/account/"))
    people.member.set_unusable_password()
    people.member.save(update_fields=["password"])
    page = text_of(browser_of(people.member).get("/account/"))
    assert "the password alone" not in page
    assert "a one-time link alone is enough to log in" in page


def test_who_invites_reads_whom_a_login_link_connects(people: People) -> None:
    page = text_of(browser_of(people.administrator).get("/people"))
    assert "Who logs in by your link cannot approve your promotion requests, nor you theirs: each" in page
    assert "manage.py adduser" in page
    home = text_of(browser_of(people.stranger).get("/"))
    assert re.search(
        r"another person, whose first link the operator makes: \S.* manage\.py adduser NAME", home
    )
