"""Reads JSON values with type checks and errors that point into the text.

Keys that a reader did not read are errors, so that no setting is lost silently.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from jobs.spec.problems import Problem, escaped
from jobs.spec.space.hyperparameters import Value

NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")
MAX_NUMBER = 1e300
"""Numbers this large or larger are refused like infinite ones."""
INTEGER = re.compile(r"[-+]?\d{1,18}")


class FormatError(Exception):
    """A text that cannot be imported; `problems` contain JSON pointers into the text."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("; ".join(f"{p.pointer}: {p.message}" for p in problems))
        self.problems = tuple(problems)


def format_error(pointer: str, message: str) -> FormatError:
    """Return an error with a single problem."""
    return FormatError([Problem(pointer, message)])


@contextmanager
def collect_errors(problems: list[Problem]) -> Iterator[None]:
    """Append the problems of a `FormatError` to `problems` instead of raising it."""
    try:
        yield
    except FormatError as error:
        problems += error.problems


class Item(NamedTuple):
    """A value in the text, with its JSON pointer."""

    value: Any
    pointer: str

    def error(self, message: str) -> FormatError:
        """Return an error at this value."""
        return format_error(self.pointer, message)

    def object(self) -> "Object":
        """Return the value as an object."""
        if not isinstance(self.value, dict):
            raise self.error(f"expected an object, got {quote_value(self.value)}")
        return Object(self.value, self.pointer)

    def items(self) -> list["Item"]:
        """Return a list's items."""
        if not isinstance(self.value, list):
            raise self.error(f"expected a list, got {quote_value(self.value)}")
        return [Item(value, f"{self.pointer}/{i}") for i, value in enumerate(self.value)]

    def string(self) -> str:
        """Return the value as a string."""
        if not isinstance(self.value, str):
            raise self.error(f"expected a string, got {quote_value(self.value)}")
        return self.value

    def boolean(self) -> bool:
        """Return the value as a boolean."""
        if not isinstance(self.value, bool):
            raise self.error(f"expected true or false, got {quote_value(self.value)}")
        return self.value

    def number(self) -> int | float:
        """Return the value as a finite number; several formats write numbers as strings."""
        value = self.value
        if isinstance(value, str) and NUMBER.fullmatch(value):
            value = int(value) if INTEGER.fullmatch(value) else float(value)
        if not isinstance(value, int | float) or isinstance(value, bool) or not _is_finite(value):
            raise self.error(f"expected a finite number, got {quote_value(self.value)}")
        return value

    def integer(self) -> int:
        """Return the value as an integer."""
        value = self.number()
        if value != int(value):
            raise self.error(f"expected an integer, got {quote_value(self.value)}")
        return int(value)

    def scalar(self) -> Value:
        """Return the value as a string, number or boolean."""
        if isinstance(self.value, bool | str):
            return self.value
        if not isinstance(self.value, int | float) or not _is_finite(self.value):
            raise self.error(f"expected a string, a number, true or false, got {quote_value(self.value)}")
        return self.value

    def one_of(self, options: Iterable[str]) -> str:
        """Return the value, which must be one of some strings."""
        if self.value not in (choices := list(options)):
            raise self.error(f"expected one of {', '.join(choices)}, got {quote_value(self.value)}")
        return str(self.value)


class Object:
    """An object in the text; it remembers which keys were read, for `reject_unknown`."""

    def __init__(self, value: dict[str, Any], pointer: str) -> None:
        self._value = value
        # A dict instead of a set, so that errors are in text order.
        self._unread = dict.fromkeys(value)
        self.pointer = pointer

    def error(self, message: str) -> FormatError:
        """Return an error at the object."""
        return format_error(self.pointer, message)

    def get(self, name: str) -> Item | None:
        """Return an entry, or None if it is missing or null."""
        self._unread.pop(name, None)
        # Several tools write null for a setting without a value.
        value = self._value.get(name)
        return None if value is None else Item(value, self.place(name))

    def place(self, name: str) -> str:
        """Return an entry's pointer."""
        return f"{self.pointer}/{escaped(name)}"

    def require(self, name: str) -> Item:
        """Return an entry.

        Raises:
            FormatError: it is missing or null.
        """
        entry = self.get(name)
        if entry is None:
            raise self.error(f"{name!r} is missing")
        return entry

    def has(self, name: str) -> bool:
        """Return whether an entry is present, without marking it as read."""
        return self._value.get(name) is not None

    def entries(self) -> Iterator[tuple[str, Item]]:
        """Yield all entries."""
        for name in self._value:
            self._unread.pop(name, None)
            yield name, Item(self._value[name], self.place(name))

    def ignore(self, *names: str, reason: str) -> list[str]:
        """Mark entries as read. Return a note with `reason` that names those that are present."""
        present = [name for name in names if self.get(name) is not None]
        return [f"{', '.join(present)}: {reason}"] if present else []

    def reject_unknown(self) -> None:
        """Raise an error for each key that was not read.

        Raises:
            FormatError: there are such keys.
        """
        problems = [
            Problem(self.place(name), f"{name!r} is not supported")
            for name in self._unread
            if self._value[name] is not None
        ]
        if problems:
            raise FormatError(problems)


def quote_value(value: Any) -> str:
    """Return a value as text for a message, at most 60 characters."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"


def _is_finite(value: int | float) -> bool:
    # The comparison is false for NaN, too.
    return abs(value) < MAX_NUMBER
