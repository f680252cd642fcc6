"""Turns pydantic's errors into JSON pointers into the body that was sent."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from pydantic import ValidationError


class Problem(NamedTuple):
    """One thing wrong with an input, and where."""

    pointer: str
    message: str


def _pointer(body: Any, loc: tuple[int | str, ...]) -> str:
    """Follow `loc` through `body`, leaving out the union tags that pydantic puts into it."""
    parts: list[str] = []
    here = body
    for index, part in enumerate(loc):
        is_last = index == len(loc) - 1
        if isinstance(here, dict) and isinstance(part, str):
            if part not in here and not is_last:
                continue  # a union's tag or the name of a union's member
            parts.append(part)
            here = here.get(part)
        elif isinstance(here, list) and isinstance(part, int):
            parts.append(str(part))
            here = here[part] if part < len(here) else None
    return "".join("/" + part.replace("~", "~0").replace("/", "~1") for part in parts)


def problems(error: ValidationError, body: Any, prefix: str = "") -> list[Problem]:
    """List what is wrong, each with a pointer that starts with `prefix` (say `/spec`)."""
    return from_items(error.errors(include_url=False), body, prefix)


def from_items(items: Iterable[Mapping[str, Any]], body: Any, prefix: str = "") -> list[Problem]:
    """Do the same for pydantic's error items, whose `loc` lies in `body`."""
    found = []
    for item in items:
        message = item["msg"].removeprefix("Value error, ")
        if item["type"] not in ("missing", "value_error", "extra_forbidden"):
            message = f"{message} (got {item.get('input')!r})"[:500]
        found.append(Problem(prefix + _pointer(body, item["loc"]), message))
    return found
