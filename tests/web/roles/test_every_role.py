"""Every route is tried with every verb by every role, and by tokens with each single scope.

`access_table.py` lists the rights; all others must be refused. A request counts as refused
with 401, 403, 404 or 405, or when it leads to the login. Any answer of 400 and above must have written
nothing.

By default a role is not tried where a lower one must already get the same answer. TRAINYARD_EVERY_ROLE=1
tries everything, in about 90 s.
"""

import itertools
import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from http.cookies import SimpleCookie
from typing import Any

import pytest
from django.db import connection, transaction
from django.test import Client

from jobs.actions.people import service_tokens, tokens
from jobs.models import Membership
from tests import factories
from tests.api.conftest import Caller
from tests.api.document.test_fuzz import operations
from tests.fuzzing import example
from tests.people import browser_of
from tests.web.access_table import GROUPS, READ_BY_SERVERS, SCOPES, table
from tests.web.test_stranger import MARK, ROUTES, Yard, address, body_of, make_yard

ROLES = ("anonymous", "stranger", "viewer", "member", "trainer", "approver", "owner", "administrator")
VERBS = ("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE")
READING = ("GET", "HEAD", "OPTIONS")
REFUSED = (401, 403, 404, 405)
INTENDED = (503, 507)
"""Codes above 499 that are answers: not ready, and the disk is full."""
# Rows that a refused request may write: the time of a token's last use, and the session of its own browser.
OWN_ROWS = ("jobs_apitoken", "django_session", "jobs_session")
WRITES = re.compile(r'\s*(?:INSERT INTO|UPDATE|DELETE FROM)\s+"(\w+)"')
KNOWN = {
    "project": "yard",
    "dataset": "yard",
    "experiment": None,  # an id differs from run to run
    "user": "member",
    "model": "yards-model",
    "version": 1,
    "stage": "production",
    "name": "mine",
    "slug": "mine",
    "spec": factories.SPEC,
    "scopes": ["read"],
    "comment": "seen",
    "trials": [1, 2],
    "values": {"units": 32},
    "search": {"max_trials": 5},
    "rules": {},
    "admin": False,
    "executions": 3,
    "max_minutes": 5,
    "max_trials": None,
    "begins": None,
    "ends": "2100-01-01T00:00:00Z",
    "pool": "default",
}
"""Values of fields, so that bodies are good enough to come to the check of the role."""


@pytest.fixture
def yard(db: None, settings: Any) -> Yard:
    settings.TRAINYARD_API_BURST = 1e9
    return make_yard()


@pytest.fixture(scope="module")
def bodies() -> dict[tuple[str, str], Any]:
    """Return a body for each REST operation, from its schema in the OpenAPI document."""
    bodies_by_operation = {}
    for method, path, operation, example_values in operations():
        content = operation.get("requestBody", {}).get("content", {})
        if "application/json" in content:
            body = example(content["application/json"]["schema"], example_values)
            filled = {name: KNOWN.get(name, value) for name, value in body.items()}
            bodies_by_operation[method.upper(), re.sub(r"{(\w+)}", r"<\1>", f"/api/v1{path}")] = filled
    return bodies_by_operation


def body_for(verb: str, route: str, bodies: dict[tuple[str, str], Any]) -> dict[str, Any]:
    if verb in READING:
        return {}
    if verb == "POST" and not route.startswith("/api/"):
        return {"data": {"name": "mine", "comment": "seen"}}
    body = bodies.get((verb, re.sub(r"<\w+:(\w+)>", r"<\1>", route)), {})
    return {"data": json.dumps(body), "content_type": "application/json"}


def refused(response: Any) -> bool:
    to_login = response.status_code == 302 and "/accounts/login/" in response["Location"]
    return to_login or response.status_code in REFUSED


@contextmanager
def written() -> Iterator[set[str]]:
    """Collect the tables to which requests write, and take the writes back at the end."""
    tables: set[str] = set()

    def watch(execute: Any, sql: str, *rest: Any) -> Any:
        if match := WRITES.match(sql):
            tables.add(match[1])
        return execute(sql, *rest)

    with connection.execute_wrapper(watch), transaction.atomic():
        yield tables
        transaction.set_rollback(True)
    tables.difference_update(OWN_ROWS)


def client_of(yard: Yard, role: str) -> Client:
    client = Client() if role == "anonymous" else browser_of(getattr(yard.people, role))
    client.raise_request_exception = False
    return client


def is_tried(role: str, verb: str, group: str | None) -> bool:
    """Return whether the answer could differ from those to the other roles."""
    if "TRAINYARD_EVERY_ROLE" in os.environ:
        return True
    if group is None:
        # Every group contains the administrator: a verb that is refused here is refused to all.
        return role == "administrator" and verb != "HEAD"
    if verb == "OPTIONS" or (verb == "HEAD" and role not in ("anonymous", "viewer")):
        return False
    if verb not in READING or role in ("anonymous", "stranger"):
        return True
    return group not in ("everyone", "people") and (group != "viewers" or role == "viewer")


def wrong(role: str, verb: str, route: str, group: str | None, response: Any, tables: set[str]) -> str | None:
    """Return a sentence about an answer that the table does not allow."""
    asked, status = f"{role}: {verb} {route} answered {response.status_code}", response.status_code
    allowed = group is not None and role in GROUPS[group][1]
    if status >= 500 and status not in INTENDED:
        return f"{asked}: no request may cause an internal error."
    if tables and not allowed and (status >= 400 or refused(response)):
        return f"{asked}, but wrote to {', '.join(sorted(tables))}: check the rights before any write."
    if role in ("anonymous", "stranger") and MARK in body_of(response):
        return f"{asked}, and shows objects of the project."
    if refused(response):
        # REST offers no HEAD. A logout leads to the login because it was done.
        done = verb == "HEAD" or route == "/accounts/logout/"
        fix = "correct the rights, or the entry in access_table.py"
        return f"{asked}, but {group} may use it: {fix}." if allowed and not done else None
    if allowed or verb == "OPTIONS":
        return None
    if group is None:
        return f"{asked}, but has no entry: add it to the narrowest group in access_table.py, after a check."
    return f"{asked}, but is for {group}: check the rights, or correct the entry in access_table.py."


@pytest.mark.parametrize("role", ROLES)
def test_a_role_reaches_what_the_table_gives_it_and_nothing_else(yard: Yard, role: str, bodies: Any) -> None:
    client, groups, complaints = client_of(yard, role), table(), []
    cookies = client.cookies.copy()
    for route, verb in itertools.product((f"/{route}" for route in ROUTES), VERBS):
        group = groups.get(("GET" if verb == "HEAD" else verb, route))
        if is_tried(role, verb, group):
            client.cookies = SimpleCookie(cookies)
            sent = body_for(verb, route, bodies)
            with written() as tables:
                response = getattr(client, verb.lower())(address(route[1:], yard), **sent)
            complaints.append(wrong(role, verb, route, group, response, tables))
    assert not any(complaints), "\n".join(filter(None, complaints))


def test_every_entry_of_the_table_is_a_route() -> None:
    unknown = {route for _, route in table()} - {f"/{route}" for route in ROUTES}
    assert not unknown, f"remove these from access_table.py: {', '.join(sorted(unknown))}"


@pytest.mark.parametrize("scope", tokens.SCOPES)
def test_a_token_with_one_scope_reaches_what_the_contract_lists(yard: Yard, scope: str, bodies: Any) -> None:
    """Its owner may do everything, so that only the scope limits it."""
    everybody = yard.people.administrator
    Membership.objects.create(project=yard.people.project, user=everybody, role="admin")
    client, complaints = Caller(everybody, (scope,))._client, []
    for method, path, _, _ in operations():
        verb, route = method.upper(), re.sub(r"{(\w+)}", r"<\1>", f"/api/v1{path}")
        with written() as tables:
            response: Any = getattr(client, method)(address(route[1:], yard), **body_for(verb, route, bodies))
        allowed = SCOPES.get(f"{verb} {path}", "read" if verb == "GET" else "write").split()
        lacks = response.status_code == 403 and response.json()["code"] == "scope_missing"
        if lacks == (scope in allowed) or (lacks and tables) or response.status_code >= 500:
            complaints.append(
                f"{scope}: {verb} {path} answered {response.status_code}, wrote {tables or '-'}"
            )
    assert not complaints, "\n".join(complaints)


def test_the_credential_of_a_prediction_server_reaches_what_servers_need_and_nothing_else(
    yard: Yard, bodies: Any
) -> None:
    secret = service_tokens.create_credential("b", by=None)
    client = Client(headers={"Authorization": f"Bearer {secret}"}, raise_request_exception=False)
    reached, complaints = set(), []
    for method, path, _, _ in operations():
        verb, route = method.upper(), re.sub(r"{(\w+)}", r"<\1>", f"/api/v1{path}")
        with written() as tables:
            response: Any = getattr(client, method)(address(route[1:], yard), **body_for(verb, route, bodies))
        if response.status_code != 403:
            reached.add(f"{verb} {path}")
        elif tables or response.json()["code"] != "scope_missing":
            complaints.append(f"{verb} {path} answered {response.status_code}, wrote {tables or '-'}")
    assert not complaints, "\n".join(complaints)
    assert reached == READ_BY_SERVERS


def test_a_token_opens_no_page(yard: Yard) -> None:
    client = Caller(yard.people.administrator, tokens.SCOPES)._client
    pages = [route for route in ROUTES if not route.startswith("api/")]
    public = {route for (_, route), group in table().items() if group == "everyone"}
    for route in pages:
        if route == "metrics":  # no page, and for tokens alone
            continue
        response = client.get(address(route, yard))
        assert refused(response) or f"/{route}" in public or response.status_code in (302, 404), route
