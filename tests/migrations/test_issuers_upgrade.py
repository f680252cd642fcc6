"""Migrates logins that know one issuer to lists of all issuers."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from tests.database import earlier, migrate

OLD, NEW = ("jobs", "0028_password_issuers"), ("jobs", "0030_issuers_of_issuers")

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def old() -> Iterator[Any]:
    """The models of the version in which a login knows one issuer."""
    with earlier(OLD) as apps:
        yield apps


def password_issuers(apps: Any, name: str) -> list[int]:
    user = apps.get_model("jobs", "User").objects.get(username=name)
    return list(user.password_issuers.order_by("pk").values_list("pk", flat=True))


def test_the_issuers_of_an_issuer_are_added(old: Any) -> None:
    users = old.get_model("jobs", "User").objects
    ada = users.create(username="ada")
    first = users.create(username="first", password_issuer=ada)
    second = users.create(username="second", password_issuer=first)
    link = {"user": second, "expires": timezone.now() + timedelta(hours=1)}
    old.get_model("jobs", "LoginLink").objects.create(**link, issuer=first, digest="a")
    old.get_model("jobs", "LoginLink").objects.create(**link, issuer=None, digest="b")
    old.get_model("jobs", "ApiToken").objects.create(user=ada, login_issuer=first, digest="c")
    new = migrate(NEW)
    both, names = sorted([ada.pk, first.pk]), ("ada", "first", "second")
    assert [password_issuers(new, name) for name in names] == [[], [ada.pk], both]
    links = new.get_model("jobs", "LoginLink").objects.order_by("digest")
    assert list(links.values_list("issuers", flat=True)) == [both, []]
    assert new.get_model("jobs", "ApiToken").objects.get().login_issuers == [first.pk]


# The migration follows the issuers in Python.
@pytest.mark.skipif(connection.vendor != "sqlite", reason="equal on every database")
def test_two_who_made_links_for_each_other_do_not_stop_the_upgrade(old: Any) -> None:
    users = old.get_model("jobs", "User").objects
    ada = users.create(username="ada")
    bob = users.create(username="bob", password_issuer=ada)
    users.filter(pk=ada.pk).update(password_issuer=bob)
    new = migrate(NEW)
    assert (password_issuers(new, "ada"), password_issuers(new, "bob")) == ([bob.pk], [ada.pk])
