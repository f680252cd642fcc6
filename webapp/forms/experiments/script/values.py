"""Reads the values of a script's arguments from texts of the form, and shows them as such texts."""

import json
from collections.abc import Iterable
from contextlib import suppress
from typing import Any


def read_value(text: str, kind: str) -> bool | int | float | str:
    """Return the value that a text means; one in quotation marks is always a text.

    Args:
        text: as it was entered.
        kind: the argument's type as its script declares it, such as `float`.
    """
    text = text.strip()
    if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'":
        return text[1:-1]
    if kind == "str":
        return text
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for number in (int, float):
        try:
            value: int | float = number(text)
        except ValueError:
            continue
        # Of the texts that Python reads as numbers, JSON has no nan and no infinity, and 1_000 is not meant.
        if "_" not in text and value - value == 0:
            return float(value) if kind == "float" else value
    return text


def read_values(text: str, kind: str) -> list[Any]:
    """Return the values that a text means, separated by commas or spaces; a JSON list is read as such."""
    with suppress(ValueError):
        listed = json.loads(text)
        if isinstance(listed, list):
            return listed
    separator = "," if "," in text else None
    return [read_value(part, kind) for part in text.split(separator) if part.strip()]


def lists_of_values(text: str) -> list[str] | None:
    """Return lists such as `[64, 32], [128]` as texts of a search; None for another text."""
    with suppress(ValueError):
        lists = json.loads(f"[{text}]")
        if all(isinstance(values, list) for values in lists):
            return [shown_parts(values) for values in lists]
    return None


def lists_of_texts(text: str) -> list[str]:
    """Return lists of texts such as `a b, c`, or `["a b"], ["c"]`, each as a list of JSON."""
    with suppress(ValueError):
        lists = json.loads(f"[{text}]")
        if lists and all(isinstance(values, list) for values in lists):
            return [json.dumps(values) for values in lists]
    parts = [part.split() for part in text.split(",")]
    return [json.dumps(values) if values else "" for values in parts]


def shown_parts(values: Iterable[Any]) -> str:
    """Return a list as one of the values of a search."""
    return " ".join(map(str, values))


def shown_value(value: Any) -> str:
    """Return the text that `read_value` turns into a value."""
    if isinstance(value, list):
        return json.dumps(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value if read_value(value, "") == value else f'"{value}"'
    return repr(value)
