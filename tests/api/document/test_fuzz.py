"""Sends generated and invalid input to every route; none may answer with an internal error."""

import json
import random
from collections.abc import Iterator
from typing import Any

import pytest

from jobs.models import User
from tests.fuzzing import example, filled, mutated, nested, query
from tests.registry.conftest import Yard
from webapp.api.site import api

SEED = 20261121
REQUESTS_PER_ROUTE = 6
pytestmark = pytest.mark.django_db


def operations() -> Iterator[tuple[str, str, dict[str, Any], dict[str, Any]]]:
    """Yield the verb, the path below `/api/v1`, the operation, and the schemas of the document."""
    document = json.loads(json.dumps(api.get_openapi_schema()))
    for path, methods in sorted(document["paths"].items()):
        for method, operation in sorted(methods.items()):
            yield method, path.removeprefix("/api/v1"), operation, document["components"]["schemas"]


def send(
    caller: Any, method: str, path: str, operation: dict[str, Any], schemas: Any, dice: random.Random
) -> Any:
    address = filled(path, dice, wild=dice.random() < 0.25)
    content = operation.get("requestBody", {}).get("content", {})
    if method == "get":
        return caller.get(address, **query(operation, dice))
    body = example(content["application/json"]["schema"], schemas) if "application/json" in content else {}
    sent = json.dumps(mutated(body, dice) if dice.random() < 0.9 else body).encode()
    kinds = ["application/json"] * 9 + ["text/plain", "multipart/form-data; boundary=x", ""]
    if dice.random() < 0.1:
        sent = nested(dice)
    headers = {"Idempotency-Key": f"k{dice.randrange(3)}"} if dice.random() < 0.2 else {}
    return caller.raw(method.upper(), address, sent, dice.choice(kinds), **headers)


@pytest.mark.parametrize("who", ["owner", "administrator", "stranger"])
def test_no_input_causes_an_internal_error(installation: Yard, call: Any, who: str, settings: Any) -> None:
    settings.TRAINYARD_API_BURST = 1e9
    installation.live()
    installation.pending()
    user = User.objects.create_superuser("root") if who == "administrator" else getattr(installation, who)
    caller, dice = call(user), random.Random(SEED)
    for method, path, operation, schemas in operations():
        for _ in range(REQUESTS_PER_ROUTE):
            answer = send(caller, method, path, operation, schemas, dice)
            context = f"{method} {answer.request['PATH_INFO']} → {answer.status_code}, seed {SEED}, as {who}"
            assert answer.status_code < 500 or answer.status_code == 507, context
            if answer.status_code >= 400:
                assert answer["Content-Type"] == "application/problem+json", context
                assert answer.json()["status"] == answer.status_code, context
