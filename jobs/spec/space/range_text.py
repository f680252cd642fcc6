"""Reads a numeric range that is written as one text, such as `16 … 128 step 16` or `log 1e-4 … 0.1`."""

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

EXAMPLES = "write it like 16 … 128, 16 … 128 step 16 or log 1e-4 … 0.1"
SCALE = re.compile(r"(linear|log|reverse[ _]log)\b", re.IGNORECASE)
STEP = re.compile(r"\bstep\b", re.IGNORECASE)
BETWEEN = re.compile(r"…|\.{2,}|\bto\b", re.IGNORECASE)
NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)
MAX_LENGTH = 200
PARTS = ("min", "max", "step", "sampling")
"""The fields of a hyperparameter that the text replaces."""


class ReadRange(NamedTuple):
    """A text in a search space that can be read: the pointer of its row in the spec, and its fields."""

    pointer: str
    text: str
    fields: dict[str, Any]


def read_range(text: str, kind: str) -> dict[str, Any]:
    """Return the fields `min`, `max`, and where they are named `step` and `sampling`.

    Args:
        text: two bounds with `…`, `..` or `to` between them; `log` or `reverse log` may be before them,
            and `step` with a number after them.
        kind: `int` for whole numbers, or `float`.

    Raises:
        ValueError: the text is no range; the message names the part that is wrong.
    """
    shown = f"range {text[:MAX_LENGTH].strip()!r}"
    if not text.strip() or len(text) > MAX_LENGTH:
        raise ValueError(f"range is {'too long' if text.strip() else 'empty'}: {EXAMPLES}")
    rest, fields = text.strip(), {}
    scale = SCALE.match(rest)
    if scale:
        rest = rest[scale.end() :]
        name = scale[0].lower().replace(" ", "_")
        fields = {} if name == "linear" else {"sampling": name}
    bounds, *steps = STEP.split(rest)
    ends = BETWEEN.split(bounds)
    if len(ends) != 2 or len(steps) > 1:
        raise ValueError(f"{shown} is not two bounds with … between them: {EXAMPLES}")
    parts = dict(zip(("min", "max", "step"), [*ends, *steps], strict=False))
    return {**{name: _number(part, kind, f"{shown}: {name}") for name, part in parts.items()}, **fields}


def _number(text: str, kind: str, place: str) -> float:
    given = text.strip()
    if not given:
        raise ValueError(f"{place} is missing; {EXAMPLES}")
    if not NUMBER.fullmatch(given):
        raise ValueError(f"{place} {given!r} is not a number; {EXAMPLES}")
    value = float(given)
    if not math.isfinite(value):
        raise ValueError(f"{place} {given!r} is too large")
    if kind != "int":
        return value
    if not value.is_integer():
        raise ValueError(f"{place} {given!r} is not a whole number; the kind number has fractions")
    # A double has no digits beyond 2^53.
    return int(given) if given.lstrip("+-").isdigit() else int(value)


def with_range(body: object) -> object:
    """Return a hyperparameter's fields with those that its `range` means, if it has one.

    Raises:
        ValueError: the range cannot be read, or one of its fields is given beside it.
    """
    if not isinstance(body, Mapping) or "range" not in body:
        return body
    text = body["range"]
    beside = [name for name in PARTS if body.get(name) is not None]
    if beside:
        raise ValueError(f"range and {beside[0]} are both given; leave out one of them")
    if not isinstance(text, str):
        raise ValueError(f"range is not a text: {EXAMPLES}")  # pydantic reports ValueError
    others = {name: value for name, value in body.items() if name not in (*PARTS, "range")}
    return {**others, **read_range(text, str(body.get("kind")))}


def ranges_of(spec: object) -> Iterator[ReadRange]:
    """Yield the readable range texts of a spec, whatever else of it is invalid."""
    search = spec.get("search") if isinstance(spec, Mapping) else None
    rows = search.get("space") if isinstance(search, Mapping) else None
    for index, row in enumerate(rows if isinstance(rows, list) else []):
        if not isinstance(row, Mapping) or row.get("kind") not in ("int", "float"):
            continue
        text = row.get("range")
        if not isinstance(text, str):
            continue
        try:
            yield ReadRange(f"/search/space/{index}", text, read_range(text, row["kind"]))
        except ValueError:
            continue
