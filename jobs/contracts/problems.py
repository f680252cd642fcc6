"""Turns pydantic's errors into JSON pointers into the body that was sent."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from pydantic import ValidationError

PLAIN = ("missing", "value_error", "extra_forbidden")
"""Kinds of error whose message says all; to the others what came in is added."""


class Problem(NamedTuple):
    """One thing wrong with an input, and where."""

    pointer: str
    message: str


def problems(error: ValidationError, body: Any, prefix: str = "") -> list[Problem]:
    """List what is wrong, each with a pointer that starts with `prefix` (say `/spec`)."""
    return from_items(error.errors(include_url=False), body, prefix)


def from_items(items: Iterable[Mapping[str, Any]], body: Any, prefix: str = "") -> list[Problem]:
    """Do the same for pydantic's error items, whose `loc` lies in `body`."""
    items = list(items)
    return [_problem(item, body, prefix) for item in items if not _follows_from_another(item, items)]


def first(error: ValidationError) -> Problem:
    """Return the first thing that is wrong, for where the body itself is not at hand.

    Its pointer leads from what was refused: a check over several fields names one of them.
    """
    item = error.errors(include_url=False)[0]
    if item["type"] == "extra_forbidden":
        return Problem("", said(item))
    return _problem({**item, "loc": ()}, item["input"], "")


def said(item: Mapping[str, Any]) -> str:
    """Return the sentence of one of pydantic's error items, in our words where it has none of its own."""
    if item["type"] == "extra_forbidden":
        return _unknown([str(part) for part in item["loc"]])
    return str(item["msg"]).removeprefix("Value error, ")


def _follows_from_another(item: Mapping[str, Any], items: list[Mapping[str, Any]]) -> bool:
    """Say whether a list is "too short" only because its own items were refused."""
    loc = item["loc"]
    return item["type"] == "too_short" and any(
        len(other["loc"]) > len(loc) and other["loc"][: len(loc)] == loc for other in items
    )


def _problem(item: Mapping[str, Any], body: Any, prefix: str) -> Problem:
    message = said(item)
    parts, here = _follow(body, item["loc"], is_missing=item["type"] == "missing")
    if item["type"] == "extra_forbidden" and parts:
        message = _unknown(parts)
    if item["type"] == "value_error":
        named, message = _named_first(message, here)
        parts += named
    if item["type"] not in PLAIN:
        message = f"{message} (got {item.get('input')!r})"[:500]
    return Problem(prefix + "".join("/" + escaped(part) for part in parts), message)


def _follow(body: Any, loc: tuple[int | str, ...], *, is_missing: bool) -> tuple[list[str], Any]:
    """Follow `loc` through `body`, leaving out the union tags that pydantic puts into it."""
    parts: list[str] = []
    here = body
    for index, part in enumerate(loc):
        if isinstance(here, dict) and isinstance(part, str):
            if part not in here and not (is_missing and index == len(loc) - 1):
                continue  # a union's tag or the name of a union's member
            parts.append(part)
            here = here.get(part)
        elif isinstance(here, list) and isinstance(part, int):
            parts.append(str(part))
            here = here[part] if part < len(here) else None
    return parts, here


def _named_first(message: str, here: Any) -> tuple[list[str], str]:
    """Return the path to the field that a check over several fields blames, and its sentence.

    Such checks belong to the whole object; ours begin their sentence with the field's name, or with a
    dotted path to it: "min 64 is above max 16", "fit.batch_size 100 does not divide …". A path with a
    colon after it is no part of the sentence: "search.space.0.name: 'units' stands twice".
    """
    first, _, rest = message.partition(" ")
    path = first.rstrip(":").split(".")
    for part in path:
        if isinstance(here, dict) and part in here:
            here = here[part]
        elif isinstance(here, list) and part.isdigit() and int(part) < len(here):
            here = here[int(part)]
        else:
            return [], message
    return path, rest if first.endswith(":") else message


def _unknown(parts: list[str]) -> str:
    *above, name = parts
    return f"{name!r} is no field of {'.'.join(above)}" if above else f"{name!r} is no field here"


def escaped(part: str) -> str:
    """Return a name as a part of a JSON pointer."""
    return part.replace("~", "~0").replace("/", "~1")
