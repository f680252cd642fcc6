"""The prediction form for a version that takes table columns: a field for each, with its type."""

import base64
import math
import re
from collections.abc import Container, Iterator, Sequence
from typing import Any, Literal, NamedTuple

from django.core.files.uploadedfile import UploadedFile
from django.http import QueryDict
from django.utils.datastructures import MultiValueDict

from jobs.errors import BadInput
from jobs.spec.data.columns import ColumnType
from jobs.spec.data.images import MAX_IMAGE_BYTES
from jobs.spec.data.profile import Column, Profile
from jobs.spec.problems import Problem
from jobs.spec.signature import Signature
from webapp.pages.data.pictures import png_uri

Widget = Literal["number", "select", "text", "textarea", "date", "datetime-local", "image"]
NAME = "column"
EXAMPLE_IMAGE = (png_uri([[128.0] * 8] * 8, 0, 255) or "").partition(",")[2]
"""The base64 of a grey image of 8 × 8 pixels."""
WHOLE = re.compile(r"[+-]?[0-9]{1,300}")
BOOLEANS = {"true": True, "false": False}


type ImageFile = UploadedFile[Any]
type Files = MultiValueDict[str, ImageFile]


class ColumnField(NamedTuple):
    """A field of the form. An empty one means that the value is missing.

    Attributes:
        column: its name.
        type: the column's type.
        widget: the kind of input.
        value: the first one in the data.
        choices: all values that a category or boolean has.
        unknown: a value outside a category's choices.
        suggestions: the most frequent values, for a category that may have others.
    """

    column: str
    type: ColumnType
    widget: Widget
    value: str
    choices: tuple[str, ...] = ()
    unknown: str = ""
    suggestions: tuple[str, ...] = ()


def column_fields(signature: Signature, profile: Profile | None) -> list[ColumnField]:
    """Return the fields, filled with the data's first row if it is known."""
    (filled,) = _fill_fields(signature, profile, [_first_row(profile)])
    return filled


def _first_row(profile: Profile | None) -> dict[str, Any]:
    return dict(profile.preview[0]) if profile is not None and profile.preview else {}


def _fill_fields(
    signature: Signature, profile: Profile | None, rows: Sequence[dict[str, Any]]
) -> Iterator[list[ColumnField]]:
    """Yield the fields filled with each row."""
    profiled = {column.name: column for column in profile.columns} if profile is not None else {}
    preview = profile.preview if profile is not None else ()
    samples = {column.name: [row.get(column.name) for row in preview] for column in signature.columns}
    for row in rows:
        yield [
            _column_field(
                column.name,
                column.type,
                profiled.get(column.name),
                [row.get(column.name), *samples[column.name]],
            )
            for column in signature.columns
        ]


def _column_field(name: str, kind: ColumnType, column: Column | None, samples: Sequence[Any]) -> ColumnField:
    sample = samples[0]
    values = column.values if column is not None else ()
    text = "" if sample is None else str(sample)
    match kind:
        case "boolean":
            return ColumnField(name, kind, "select", _boolean_text(sample), tuple(BOOLEANS))
        case "number" | "integer":
            # A whole number may be stored as 5.0.
            return ColumnField(name, kind, "number", text.removesuffix(".0"))
        case "date":
            has_time = any(map(_has_time, samples))
            widget: Widget = "datetime-local" if has_time else "date"
            return ColumnField(name, kind, widget, text[:19] if has_time else text[:10])
        case "image":
            return ColumnField(name, kind, "image", "")
        case "category":
            if values and column is not None and len(values) == column.distinct:
                return ColumnField(name, kind, "select", text, values, unknown=_unknown_value(values))
            return ColumnField(name, kind, "text", text, suggestions=values)
        case _:
            return ColumnField(name, kind, "textarea", text)


def _has_time(date: Any) -> bool:
    """Return whether a date has a time. Any date in a series may have one."""
    return date is not None and str(date)[10:19] not in ("", "T00:00:00")


def _unknown_value(values: Container[str]) -> str:
    """Return a word that is not among the values."""
    word = "unknown"
    while word in values:
        word += "?"
    return word


def _boolean_text(sample: Any) -> str:
    return "" if sample is None else "true" if sample else "false"


def example_row(signature: Signature, profile: Profile | None) -> dict[str, Any]:
    """Return a valid row: the data's first one, with a small grey image for an image."""
    (row,) = examples_of(signature, profile, [_first_row(profile)])
    return row


def examples_of(
    signature: Signature, profile: Profile | None, rows: Sequence[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return data rows as a request has them, with a small grey image for an image."""
    return [
        {
            field.column: {"b64": EXAMPLE_IMAGE}
            if field.type == "image"
            else value_of(field.value, field.type, field.column)
            for field in filled
        }
        for filled in _fill_fields(signature, profile, rows)
    ]


def read_row(posted: QueryDict, signature: Signature, files: Files | None = None) -> dict[str, Any]:
    """Return the row that a person entered.

    Args:
        posted: the form's fields.
        signature: the version's signature.
        files: the form's images.

    Raises:
        BadInput: a field does not match its column's type, or the form belongs to another version.
    """
    if any(column.type == "image" for column in signature.columns):
        file = files.get(NAME) if files is not None else None
        return {column.name: _read_image(file) for column in signature.columns}
    values = posted.getlist(NAME)
    if len(values) != len(signature.columns):
        message = (
            f"The form has {len(values)} fields, and the version takes {len(signature.columns)} columns."
        )
        raise BadInput(message, [Problem(f"/{NAME}", message)])
    pairs = zip(signature.columns, values, strict=True)
    return {column.name: value_of(value, column.type, column.name) for column, value in pairs}


def _read_image(file: ImageFile | None) -> dict[str, str]:
    """Return an uploaded image as a request has it. The prediction server decodes it.

    Raises:
        BadInput: no file was chosen, or it is too large.
    """
    if file is None:
        message = "Choose a file with an image."
        raise BadInput(message, [Problem(f"/{NAME}", message)])
    if (file.size or 0) > MAX_IMAGE_BYTES:
        message = f"{file.name} has {file.size:,} bytes; an image has at most {MAX_IMAGE_BYTES:,}."
        raise BadInput(message, [Problem(f"/{NAME}", message)])
    return {"b64": base64.b64encode(file.read()).decode()}


def value_of(text: str, kind: ColumnType, column: str) -> Any:
    """Return a field's value, None if it is empty.

    Raises:
        BadInput: it does not match its column's type.
    """
    if text.strip() == "":
        return None
    try:
        match kind:
            case "number" | "integer":
                return _number(text, kind)
            case "boolean":
                return BOOLEANS[text]
    except (ValueError, OverflowError, KeyError) as error:
        message = f"{column}: {text!r} is not of type {kind}."
        raise BadInput(message, [Problem(f"/{NAME}", message)]) from error
    return text


def _number(text: str, kind: ColumnType) -> int | float:
    """Return a number as JSON has it: whole ones with all of their digits.

    Raises:
        ValueError: the text is none, or not whole as an integer is.
    """
    if WHOLE.fullmatch(text.strip()):
        return int(text)
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("JSON has no such number")
    if number.is_integer():
        return int(number)
    if kind == "integer":
        raise ValueError("not whole")
    return number
