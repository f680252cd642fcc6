"""Takes the scope `serve` from tokens of people, and leaves a row for each in a log that verifies."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.utils import timezone

from jobs.models import ApiToken, AuditEvent, User
from jobs.queries.audit.audit_verification import verify_chain
from tests.database import earlier, upgrade

OLD = ("jobs", "0048_three_sandbox_levels")

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def old() -> Iterator[Any]:
    with earlier(OLD) as apps:
        yield apps


def token(apps: Any, owner: str, name: str, *scopes: str, **more: Any) -> None:
    users = apps.get_model("jobs", "User").objects
    user, _ = users.get_or_create(username=owner, defaults={"is_service": owner == "installation"})
    digest = f"{name:0>64}"
    apps.get_model("jobs", "ApiToken").objects.create(
        user=user, name=name, digest=digest, prefix="ty_abc", scopes=list(scopes), **more
    )


def test_people_lose_the_scope_and_the_installation_keeps_its_server(old: Any) -> None:
    until = timezone.now()
    token(old, "ada", "mixed", "read", "serve")
    token(old, "bob", "alone", "serve", predicts_until=until)
    token(old, "bob", "other", "read", "write")
    token(old, "installation", "service:serve", "serve")
    upgrade()
    scopes = dict(ApiToken.objects.values_list("name", "scopes"))
    assert scopes == {"mixed": ["read"], "alone": [], "other": ["read", "write"], "local": ["serve"]}
    assert ApiToken.objects.get(name="alone").predicts_until == until
    rows = AuditEvent.objects.filter(action="token.scope_removed").order_by("number")
    assert [row.detail["owner"] for row in rows] == ["ada", "bob"]
    assert [row.detail["scopes"] for row in rows] == [["read"], []]
    assert verify_chain().holds
    assert User.objects.count() == 3


def test_an_installation_without_such_tokens_gets_no_row(old: Any) -> None:
    token(old, "ada", "plain", "read")
    upgrade()
    assert not AuditEvent.objects.exists()
