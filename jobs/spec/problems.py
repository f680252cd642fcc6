"""Converts pydantic's errors to messages with JSON pointers into the request body."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from pydantic import ValidationError

MAX_PROBLEMS = 100
"""The most problems that are reported for one input, which may have a hundred thousand wrong fields."""
MAX_ITEMS = 10_000
"""The most pydantic errors that are read; one refused value may have several."""
TYPES = {
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "int_type": "a number",
    "int_parsing": "a number",
    "int_from_float": "a number",
    "float_type": "a number",
    "float_parsing": "a number",
    "string_type": "a text",
}
"""The nouns for the types of single values, by the errors of pydantic."""
PLAIN = ("missing", "value_error", "extra_forbidden")
"""Error types whose message is complete; the received value is appended to all others."""


class Problem(NamedTuple):
    """One thing wrong with an input, and where; `job` is one whose page shows more."""

    pointer: str
    message: str
    job: int | None = None


def warning(pointer: str, consequence: str, next_step: str) -> Problem:
    """Return a warning about a valid setting: its consequence, and the next step."""
    return Problem(pointer, f"{consequence}. {next_step}.")


def problems(error: ValidationError, body: Any, prefix: str = "") -> list[Problem]:
    """List a body's problems, with pointers that start with `prefix`, for example `/spec`."""
    return from_items(error.errors(include_url=False), body, prefix)


def from_items(items: Iterable[Mapping[str, Any]], body: Any, prefix: str = "") -> list[Problem]:
    """List the first problems in pydantic's error items, whose `loc` refers to `body`."""
    items = list(islice(items, MAX_ITEMS))
    # The places that have an error inside.
    above = {item["loc"][:depth] for item in items for depth in range(len(item["loc"]))}
    # A list is "too short" only because its items were refused.
    innermost = [item for item in items if item["type"] != "too_short" or item["loc"] not in above]
    return list(islice(_one_for_each_value(innermost, body, prefix), MAX_PROBLEMS))


def _one_for_each_value(items: Sequence[Mapping[str, Any]], body: Any, prefix: str) -> Iterator[Problem]:
    """Yield the problems; a value that may have several types has one problem, not one for each type."""
    place = 0
    while place < len(items):
        last = place + 1
        while last < len(items) and _is_of_same_value(items[place], items[last], body):
            last += 1
        nouns = dict.fromkeys(TYPES[item["type"]] for item in items[place:last] if item["type"] in TYPES)
        problem = _problem(items[place], body, prefix)
        if len(nouns) > 1:
            given = json.dumps(items[place].get("input"), default=repr)
            *others, final = nouns
            message = f"expected {', '.join(others)} or {final} (got {given})"[:500]
            problem = problem._replace(message=message)
        yield problem
        place = last if len(nouns) > 1 else place + 1


def _is_of_same_value(item: Mapping[str, Any], other: Mapping[str, Any], body: Any) -> bool:
    """Return whether two errors are about the types that one value may have, and not about neighbours."""
    above = item["loc"][:-1]
    if {item["type"], other["type"]} - TYPES.keys() or other["loc"][:-1] != above:
        return False
    # The last part of each location is the name of a type, and no place in the body.
    places = [_follow(body, loc, is_missing=False)[0] for loc in (above, item["loc"], other["loc"])]
    return places[0] == places[1] == places[2]


def first(error: ValidationError) -> Problem:
    """Return the first problem when the body is not available.

    Its pointer is relative to the refused value: a check over several fields names one of them.
    """
    item = error.errors(include_url=False)[0]
    # Here the location is the unknown name, which the message contains.
    if item["type"] == "extra_forbidden":
        return Problem("", message_of(item))
    return _problem({**item, "loc": ()}, item["input"], "")


def message_of(item: Mapping[str, Any]) -> str:
    """Return the message for one pydantic error item."""
    if item["type"] == "extra_forbidden":
        return _unknown([str(part) for part in item["loc"]])
    return str(item["msg"]).removeprefix("Value error, ")


def _problem(item: Mapping[str, Any], body: Any, prefix: str) -> Problem:
    message = message_of(item)
    parts, here = _follow(body, item["loc"], is_missing=item["type"] == "missing")
    if item["type"] == "extra_forbidden" and parts:
        message = _unknown(parts)
    if item["type"] == "value_error":
        named, message = _named_first(message, here)
        parts += named
    if item["type"] not in PLAIN:
        # Cut, because the input may be as long as the whole request.
        message = f"{message} (got {item.get('input')!r})"[:500]
    return Problem(prefix + "".join("/" + escaped(part) for part in parts), message)


def _follow(body: Any, loc: tuple[int | str, ...], *, is_missing: bool) -> tuple[list[str], Any]:
    """Follow `loc` through `body`, leaving out the union tags that pydantic puts into it."""
    parts: list[str] = []
    here = body
    for index, part in enumerate(loc):
        if isinstance(here, dict) and isinstance(part, str):
            # Not a key in the body: pydantic's tag for a union, or its name for a member.
            if part not in here and not (is_missing and index == len(loc) - 1):
                continue
            parts.append(part)
            here = here.get(part)
        elif isinstance(here, list) and isinstance(part, int):
            parts.append(str(part))
            here = here[part] if part < len(here) else None
    return parts, here


def _named_first(message: str, here: Any) -> tuple[list[str], str]:
    """Split a model validator's message into the path that it names and the rest.

    Pydantic assigns such errors to the whole object. Our validators begin their message with the field's
    name or dotted path: "min 64 is above max 16", "fit.batch_size 100 does not divide …". A path that ends
    with a colon is removed from the message: "search.space.0.name: 'units' is used twice".
    """
    word, _, rest = message.partition(" ")
    path = word.rstrip(":").split(".")
    for part in path:
        if isinstance(here, dict) and part in here:
            here = here[part]
        elif isinstance(here, list) and part.isdigit() and int(part) < len(here):
            here = here[int(part)]
        else:
            return [], message
    return path, rest if word.endswith(":") else message


def _unknown(parts: list[str]) -> str:
    *above, name = parts
    return f"{name!r} is not a field of {'.'.join(above)}" if above else f"{name!r} is not a known field"


def escaped(part: str) -> str:
    """Escape a name for a JSON pointer."""
    return part.replace("~", "~0").replace("/", "~1")
