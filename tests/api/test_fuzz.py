"""Sends generated and invalid input to every route; none may answer with an internal error."""

import json
import random
from collections.abc import Iterator
from typing import Any

import pytest

from jobs.models import User
from tests.registry.conftest import Yard
from webapp.api.site import api

SEED = 20261121
REQUESTS_PER_ROUTE = 6
JUNK: list[Any] = [
    None, "", " ", 0, -1, 1, 2**31, 2**63, -(2**70), 1.5, 1e308, True, -0.0, "NaN", "ß\u202e", "\ufffe",
    [], {}, [[]], {"a": {"b": []}}, {"": ""}, ["x"] * 50, "a" * 5000,
    "../../etc/passwd", "2026-13-45", "1; drop table",
]  # fmt: skip
KNOWN = {
    "name": "digits", "slug": "vision", "project": "vision", "number": 1, "version": 1, "alias": "best",
    "username": "member", "user": "member", "model": "digits", "n": 1,
}  # fmt: skip
pytestmark = pytest.mark.django_db


def operations() -> Iterator[tuple[str, str, dict[str, Any], dict[str, Any]]]:
    document = json.loads(json.dumps(api.get_openapi_schema(path_prefix="")))
    for path, methods in sorted(document["paths"].items()):
        for method, operation in sorted(methods.items()):
            yield method, path, operation, document["components"]["schemas"]


def example(schema: dict[str, Any], known: dict[str, Any], depth: int = 0) -> Any:
    """Return a value that a JSON schema accepts, at least approximately."""
    if depth > 8:
        return None
    if "$ref" in schema:
        return example(known[schema["$ref"].rsplit("/", 1)[-1]], known, depth + 1)
    for key in ("examples", "enum"):
        if schema.get(key):
            return schema[key][0]
    for key in ("const", "default", "example"):
        if key in schema:
            return schema[key]
    for key in ("anyOf", "oneOf", "allOf"):
        if schema.get(key):
            return example(schema[key][0], known, depth + 1)
    if schema.get("type") == "object":
        return {name: example(part, known, depth + 1) for name, part in schema.get("properties", {}).items()}
    if schema.get("type") == "array":
        return [example(schema.get("items", {}), known, depth + 1)]
    return {"integer": 1, "number": 0.5, "boolean": True}.get(schema.get("type", ""), "text")


def mutated(value: Any, dice: random.Random) -> Any:
    """Return a copy with one value at a random place replaced, removed or added."""
    if isinstance(value, dict) and value and dice.random() < 0.8:
        copy, name = dict(value), dice.choice(list(value))
        match dice.randrange(4):
            case 0:
                del copy[name]
            case 1:
                copy[dice.choice(["extra", "", "__class__", name.upper()])] = dice.choice(JUNK)
            case _:
                copy[name] = mutated(copy[name], dice)
        return copy
    if isinstance(value, list) and value and dice.random() < 0.5:
        return [*value[:-1], mutated(value[-1], dice)]
    return dice.choice(JUNK)


def filled(path: str, dice: random.Random, *, wild: bool) -> str:
    """Fill the parameters of a path: with names that exist, or with invalid ones if `wild`."""
    while "{" in path:
        name = path[path.index("{") + 1 : path.index("}")]
        known = KNOWN.get(name, 1)
        chosen = (
            dice.choice(["0", "-1", "99999999999999999999", "x y", "%2e%2e", "ß", "a" * 300])
            if wild
            else known
        )
        path = path.replace("{" + name + "}", str(chosen), 1)
    return path


def query(operation: dict[str, Any], dice: random.Random) -> dict[str, str]:
    names = [p["name"] for p in operation.get("parameters", []) if p["in"] == "query" and p["name"] != "wait"]
    return {name: str(dice.choice(JUNK)) for name in names if dice.random() < 0.4}


def send(
    caller: Any, method: str, path: str, operation: dict[str, Any], known: Any, dice: random.Random
) -> Any:
    address = filled(path, dice, wild=dice.random() < 0.25)
    content = operation.get("requestBody", {}).get("content", {})
    if method == "get":
        return caller.get(address, **query(operation, dice))
    body = example(content["application/json"]["schema"], known) if "application/json" in content else {}
    sent = json.dumps(mutated(body, dice) if dice.random() < 0.9 else body).encode()
    kinds = ["application/json"] * 9 + ["text/plain", "multipart/form-data; boundary=x", ""]
    headers = {"Idempotency-Key": f"k{dice.randrange(3)}"} if dice.random() < 0.2 else {}
    return caller.raw(method.upper(), address, sent, dice.choice(kinds), **headers)


@pytest.mark.parametrize("who", ["owner", "administrator", "stranger"])
def test_no_input_causes_an_internal_error(yard: Yard, call: Any, who: str, settings: Any) -> None:
    settings.TRAINYARD_API_BURST = 1e9
    yard.live()
    yard.pending()
    user = User.objects.create_superuser("root") if who == "administrator" else getattr(yard, who)
    caller, dice = call(user), random.Random(SEED)
    for method, path, operation, known in operations():
        for _ in range(REQUESTS_PER_ROUTE):
            answer = send(caller, method, path, operation, known, dice)
            context = f"{method} {answer.request['PATH_INFO']} → {answer.status_code}, seed {SEED}, as {who}"
            assert answer.status_code < 500 or answer.status_code == 507, context
            if answer.status_code >= 400:
                assert answer["Content-Type"] == "application/problem+json", context
                assert answer.json()["status"] == answer.status_code, context
