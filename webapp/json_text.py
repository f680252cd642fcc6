"""Parses JSON text from requests, strictly, and finds NUL characters in requests."""

import json
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

from django.http import QueryDict

from jobs.errors import BadInput
from jobs.spec.json_depth import MAX_DEPTH, is_too_deep
from jobs.spec.problems import Problem, escaped
from webapp.http_errors import Malformed


def read_json(raw: bytes) -> Any:
    """Parse JSON text.

    Raises:
        Malformed: it is not JSON, is nested too deep, or holds NaN, infinity or half a surrogate pair.
        BadInput: a text in it has a NUL character.
    """
    if is_too_deep(raw):
        raise Malformed(f"The body is nested deeper than {MAX_DEPTH} levels of objects and lists.")
    try:
        value = json.loads(raw, parse_constant=_refuse_constant)
        # Half a surrogate pair (`"\ud800"`) parses, but cannot be encoded, so no database can store it.
        json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise Malformed(f"The body is not JSON: {error}") from error
    # PostgreSQL stores no NUL in text or JSON. Most bodies have none, and are not searched.
    if b"\\u0000" in raw and (pointers := list(_with_nul(value))):
        raise nul_refused(pointers)
    return value


def nul_refused(pointers: Sequence[str]) -> BadInput:
    """Return the error for texts that have a NUL character.

    Args:
        pointers: JSON pointers to the texts; empty for the whole body.
    """
    named = pointers[0].removeprefix("/")
    message = f"The field {named!r} has a NUL character: remove it." if named else "Remove the NUL character."
    return BadInput(message, [Problem(pointer, "has a NUL character") for pointer in pointers])


def names_with_nul(entries: QueryDict) -> list[str]:
    """Return the field names in a form or an address that have a NUL character."""
    return [name for name, texts in entries.lists() if "\0" in name or any("\0" in text for text in texts)]


def _with_nul(value: Any) -> Iterator[str]:
    """Yield a JSON pointer to each text that has a NUL character, in any order."""
    # A stack instead of recursion: the parser accepts deeper values than Python's calls.
    remaining = [("", value)]
    while remaining:
        pointer, node = remaining.pop()
        if isinstance(node, str) and "\0" in node:
            yield pointer
        elif isinstance(node, list):
            remaining += [(f"{pointer}/{index}", item) for index, item in enumerate(node)]
        elif isinstance(node, dict):
            remaining += [(f"{pointer}/{escaped(name)}", item) for name, item in node.items()]
            yield from (f"{pointer}/{escaped(name)}" for name in node if "\0" in name)


def _refuse_constant(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")
