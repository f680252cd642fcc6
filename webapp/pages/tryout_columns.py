"""The prediction form of a version that takes the columns of a table: a field for each, with its type."""

import math
from typing import Any, Literal, NamedTuple

from django.http import QueryDict

from jobs.contracts.columns import ColumnType
from jobs.contracts.problems import Problem
from jobs.contracts.profile import Column, Profile
from jobs.contracts.signature import Signature
from jobs.errors import BadInput

Widget = Literal["number", "select", "text", "textarea", "date", "datetime-local"]
NAME = "column"
BOOLEANS = {"true": True, "false": False}


class ColumnField(NamedTuple):
    """A field of the form. An empty one means that the value is missing."""

    column: str
    type: ColumnType
    widget: Widget
    value: str
    choices: tuple[str, ...] = ()
    suggestions: tuple[str, ...] = ()


def fields(signature: Signature, profile: Profile | None) -> list[ColumnField]:
    """Return the fields, filled with the first row of the data if it is known."""
    row = dict(profile.preview[0]) if profile is not None and profile.preview else {}
    known = {column.name: column for column in profile.columns} if profile is not None else {}
    return [
        _field(each.name, each.type, known.get(each.name), row.get(each.name)) for each in signature.columns
    ]


def _field(name: str, kind: ColumnType, column: Column | None, sample: Any) -> ColumnField:
    values = column.values if column is not None else ()
    text = "" if sample is None else str(sample)
    match kind:
        case "boolean":
            return ColumnField(name, kind, "select", _boolean_text(sample), tuple(BOOLEANS))
        case "number" | "integer":
            # A whole number may be stored as 5.0.
            return ColumnField(name, kind, "number", text.removesuffix(".0"))
        case "date":
            # The time is asked for if the first row has one.
            has_time = text[10:19] not in ("", "T00:00:00")
            widget: Widget = "datetime-local" if has_time else "date"
            return ColumnField(name, kind, widget, text[:19] if has_time else text[:10])
        case "category":
            if values and column is not None and len(values) == column.distinct:
                return ColumnField(name, kind, "select", text, values)
            return ColumnField(name, kind, "text", text, suggestions=values)
        case _:
            return ColumnField(name, kind, "textarea", text)


def _boolean_text(sample: Any) -> str:
    return "" if sample is None else "true" if sample else "false"


def example(signature: Signature, profile: Profile | None) -> dict[str, Any]:
    """Return a valid row: the first one of the data."""
    return {
        field.column: _value(field.value, field.type, field.column) for field in fields(signature, profile)
    }


def read(posted: QueryDict, signature: Signature) -> dict[str, Any]:
    """Return the row that a person entered.

    Raises:
        BadInput: a field is not of the type of its column, or the form is of another version.
    """
    values = posted.getlist(NAME)
    if len(values) != len(signature.columns):
        message = (
            f"The form has {len(values)} fields, and the version takes {len(signature.columns)} columns."
        )
        raise BadInput(message, [Problem(f"/{NAME}", message)])
    pairs = zip(signature.columns, values, strict=True)
    return {column.name: _value(value, column.type, column.name) for column, value in pairs}


def _value(text: str, kind: ColumnType, column: str) -> Any:
    if text.strip() == "":
        return None
    try:
        match kind:
            case "number":
                number = float(text)
                if not math.isfinite(number):
                    raise ValueError("JSON has no such number")
                return int(number) if number.is_integer() else number
            case "integer":
                return int(float(text))
            case "boolean":
                return BOOLEANS[text]
    except (ValueError, OverflowError, KeyError) as error:
        message = f"{column}: {text!r} is not of type {kind}."
        raise BadInput(message, [Problem(f"/{NAME}", message)]) from error
    return text
