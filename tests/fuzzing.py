"""Generates invalid input for the fuzz of the suite and of a running installation."""

import copy
import json
import random
from typing import Any

JUNK: list[Any] = [
    None, "", " ", 0, -1, 1, 2**31, 2**63, -(2**70), 1.5, 1e308, True, -0.0, "NaN", "ß\u202e", "\ufffe",
    [], {}, [[]], {"a": {"b": []}}, {"": ""}, ["x"] * 50, "a" * 5000,
    "((((((.+)+)+)+)+)+)+!", "(?=a)", "[[:alpha:]", "(" * 150 + ")" * 150,
    "../../etc/passwd", "2026-13-45", "1; drop table",
]  # fmt: skip
KNOWN = {
    "name": "digits", "slug": "vision", "project": "vision", "number": 1, "version": 1, "alias": "best",
    "username": "member", "user": "member", "model": "digits", "n": 1,
}  # fmt: skip
HEADER_NAMES = [
    b"accept", b"authorization", b"cookie", b"content-type", b"content-length", b"content-encoding", b"range",
    b"if-match", b"if-none-match", b"idempotency-key", b"last-event-id", b"x-csrftoken", b"x-forwarded-for",
    b"x-forwarded-proto", b"accept-language", b"accept-encoding", b"origin", b"referer", b"host",
]  # fmt: skip
HEADER_VALUES = [
    b"", b" ", b"\xff\xfe", b"*", b"Bearer", b"Bearer ty_x", b"Basic Og==", b"sessionid=",
    b"-1", b"99999999999999999999", b"bytes=5-1,0-", b'W/"1"', b'"1", "2"', b"text/event-stream;q=x",
    b"application/json; charset=no", b"multipart/form-data", b"gzip, br;q=0", b"a" * 3000, b"::1, x", b"null",
]  # fmt: skip


def example(schema: dict[str, Any], schemas: dict[str, Any], depth: int = 0) -> Any:
    """Return a value that a JSON schema accepts, at least approximately."""
    if depth > 8:
        return None
    if "$ref" in schema:
        return example(schemas[schema["$ref"].rsplit("/", 1)[-1]], schemas, depth + 1)
    for key in ("examples", "enum"):
        if schema.get(key):
            return schema[key][0]
    for key in ("const", "default", "example"):
        if key in schema:
            return schema[key]
    for key in ("anyOf", "oneOf", "allOf"):
        if schema.get(key):
            return example(schema[key][0], schemas, depth + 1)
    if schema.get("type") == "object":
        return {
            name: example(part, schemas, depth + 1) for name, part in schema.get("properties", {}).items()
        }
    if schema.get("type") == "array":
        return [example(schema.get("items", {}), schemas, depth + 1)]
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


def nested(dice: random.Random) -> bytes:
    """Return a body that is nested too deep, or not closed, or only just accepted."""
    depth = dice.choice([60, 65, 1000, 9000, 100_000])
    opening, closing = dice.choice([(b"[", b"]"), (b'{"spec":', b"}"), (b'{"a":[', b"]}")])
    return opening * depth + b"1" + closing * dice.choice([depth, 0])


def filled(path: str, dice: random.Random, *, wild: bool, values: dict[str, Any] = KNOWN) -> str:
    """Fill the parameters of a path: with names that exist, or with invalid ones if `wild`."""
    while "{" in path:
        name = path[path.index("{") + 1 : path.index("}")]
        right = values.get(name, 1)
        chosen = (
            dice.choice(["0", "-1", "99999999999999999999", "x y", "%2e%2e", "ß", "a" * 300])
            if wild
            else right
        )
        path = path.replace("{" + name + "}", str(chosen), 1)
    return path


def query(operation: dict[str, Any], dice: random.Random) -> dict[str, str]:
    names = [p["name"] for p in operation.get("parameters", []) if p["in"] == "query" and p["name"] != "wait"]
    return {name: str(dice.choice(JUNK)) for name in names if dice.random() < 0.4}


def spec(valid: dict[str, Any], dice: random.Random) -> dict[str, Any]:
    """Return a valid experiment spec with one to three changes, or a value of JSON that is no spec."""
    changed: Any = copy.deepcopy(valid)
    for _ in range(dice.randint(1, 3)):
        changed = mutated(changed, dice)
    return changed


def headers(dice: random.Random) -> list[tuple[bytes, bytes]]:
    """Return headers of a request; some are repeated, damaged or in conflict."""
    return [
        (
            dice.choice(HEADER_NAMES),
            dice.choice(HEADER_VALUES) + dice.randbytes(dice.choice([0, 0, 8])).hex().encode(),
        )
        for _ in range(dice.randrange(6))
    ]


def raw_query(dice: random.Random) -> bytes:
    """Return a query string with invalid escapes, repeated names and wrong numbers."""
    names = [
        "limit",
        "cursor",
        "sort",
        "project",
        "state",
        "after",
        "q",
        "page",
        "names",
        "max_points",
        "wait%3D",
    ]
    values = [
        "",
        "%",
        "%zz",
        "%00",
        "%ff%fe",
        "-1",
        "9" * 40,
        "0x10",
        "NaN",
        "a" * 3000,
        "[]",
        "'",
        "%0d%0ax:y",
    ]
    return "&".join(f"{dice.choice(names)}={dice.choice(values)}" for _ in range(dice.randrange(5))).encode()


def frame(job: int, dice: random.Random) -> str | bytes:
    """Return a frame for a live socket: a valid message, a changed one, or bytes."""
    message = {
        "op": dice.choice(["subscribe", "unsubscribe"]),
        "job": job,
        "after": dice.choice([None, 0, 5]),
    }
    match dice.randrange(5):
        case 0:
            return json.dumps(message)
        case 1:
            return dice.randbytes(dice.choice([0, 1, 200]))
        case 2:
            return nested(dice).decode()[:4000]
        case _:
            return json.dumps(mutated(message, dice))
