"""Reads and writes the values of each type of column as both kinds of database have them.

A value in between is what Python has for it: text, a number, a boolean, bytes, or a time with its zone. JSON
stays text, because NULL and JSON's null would both be None.
"""

import datetime as dt
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.db.models import Field, ForeignKey
from django.utils.dateparse import parse_datetime

from webapp.ops.errors import OpsError

type Convert = Callable[[Any], Any]


def _same(value: Any) -> Any:
    return value


def _read_time(value: Any) -> dt.datetime:
    time = value if isinstance(value, dt.datetime) else parse_datetime(value)
    if time is None:
        raise ValueError(f"{value!r} is no time")
    return time.replace(tzinfo=dt.UTC) if time.tzinfo is None else time.astimezone(dt.UTC)


def _time_in_sqlite(value: dt.datetime) -> str:
    # As Django writes it: without the fraction if that is zero.
    return str(value.replace(tzinfo=None))


def _json_in_sqlite(text: str) -> str:
    # As Django writes it, because SQLite compares it as text. PostgreSQL orders keys, and escapes nothing.
    return json.dumps(json.loads(text))


def _comparable_json(text: str) -> str:
    """Return JSON in one form. PostgreSQL returns 1e20 as an integer, and has no negative zero."""
    # Marked by a character that no string in PostgreSQL can have, so that 1 is not "1".
    value = json.loads(
        text,
        parse_int=lambda number: f"\0{int(number)}",
        parse_float=lambda number: f"\0{_comparable_float(float(number))}",
    )
    return json.dumps(value, sort_keys=True)


def _comparable_float(number: float) -> str:
    return str(int(number)) if number.is_integer() else repr(number)


@dataclass(frozen=True)
class Kind:
    """How values of a type are read, written to SQLite, and compared. PostgreSQL takes them as read."""

    read: Convert = _same
    to_sqlite: Convert = _same
    comparable: Convert = _same


PLAIN = Kind()
KINDS: dict[str, Kind] = {
    **dict.fromkeys(("AutoField", "BigAutoField", "BigIntegerField"), PLAIN),
    **dict.fromkeys(("PositiveSmallIntegerField", "PositiveIntegerField", "PositiveBigIntegerField"), PLAIN),
    **dict.fromkeys(("CharField", "TextField", "SlugField"), PLAIN),
    "BooleanField": Kind(read=bool, to_sqlite=int),
    # SQLite may have stored a whole number as an integer.
    "FloatField": Kind(read=float, comparable=repr),
    "BinaryField": Kind(read=bytes),
    "DateTimeField": Kind(read=_read_time, to_sqlite=_time_in_sqlite, comparable=dt.datetime.isoformat),
    "JSONField": Kind(to_sqlite=_json_in_sqlite, comparable=_comparable_json),
}
"""By the internal type of Django's fields."""


def kind_of(field: "Field[Any, Any]") -> Kind:
    """Return the kind of a field's column.

    Raises:
        OpsError: there is none for its type.
    """
    # A foreign key has the type of the key that it names.
    target = field.target_field if isinstance(field, ForeignKey) else field
    kind = KINDS.get(target.get_internal_type())
    if kind is None:
        raise OpsError(f"The field {field} has the type {target.get_internal_type()}, which is not moved.")
    return kind


def applied(convert: Convert, value: Any) -> Any:
    """Convert a value; None stays None."""
    return None if value is None else convert(value)
