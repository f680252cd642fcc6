"""Defines the labels of workers, which jobs may ask for."""

import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field

KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}")
VALUE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:/+-]{0,62}")
MAX_LABELS = 16
KEY_RULE = "a name has up to 63 letters, digits and _ . - and begins with a letter or digit"
VALUE_RULE = "a value has up to 63 letters, digits and _ . : / + - and begins with a letter or digit"


def _key(text: str) -> str:
    if KEY.fullmatch(text) is None:
        raise ValueError(f"{text[:70]!r} is not the name of a label: {KEY_RULE}")
    return text


def _value(text: str) -> str:
    if VALUE.fullmatch(text) is None:
        raise ValueError(f"{text[:70]!r} is not the value of a label: {VALUE_RULE}")
    return text


LabelKey = Annotated[str, AfterValidator(_key)]
LabelValue = Annotated[str, AfterValidator(_value)]


def read_label(text: str) -> tuple[str, str]:
    """Return the name and the value in `KEY=VALUE`.

    Raises:
        ValueError: the text is no label.
    """
    key, equals, value = text.strip().partition("=")
    if not equals:
        raise ValueError(f"{text[:140]!r} has no =; write KEY=VALUE, such as gpu=h200")
    return _key(key.strip()), _value(value.strip())


def read_labels(text: str) -> dict[str, str]:
    """Return the labels in a list such as `gpu=h200, site=berlin`; empty if the text is blank.

    Raises:
        ValueError: a part of the list is no label, or a name is there twice.
    """
    return join_labels(read_label(part) for part in text.split(",") if part.strip())


def join_labels(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the labels of a list.

    Raises:
        ValueError: a name has two values, or there are too many.
    """
    labels: dict[str, str] = {}
    for key, value in pairs:
        if labels.setdefault(key, value) != value:
            raise ValueError(f"the label {key} has two values, {labels[key]} and {value}; give it once")
    if len(labels) > MAX_LABELS:
        raise ValueError(f"{len(labels)} labels; give at most {MAX_LABELS}")
    return labels


def _read_text(value: Any) -> Any:
    """Return the labels in a text, as the form sends an invalid one; other values unchanged."""
    return read_labels(value) if isinstance(value, str) else value


Labels = Annotated[dict[LabelKey, LabelValue], Field(max_length=MAX_LABELS), BeforeValidator(_read_text)]


def labels_text(labels: Mapping[str, str]) -> str:
    """Return labels as `gpu=h200, site=berlin`."""
    return ", ".join(f"{key}={value}" for key, value in sorted(labels.items()))


def has_labels(labels: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    """Return whether all wanted labels are among these, with the same values."""
    return wanted.items() <= labels.items()
