"""Reads foreign objects key by key: what nobody asks for is refused, so nothing is dropped in silence."""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from jobs.contracts.hyperparameters import Value
from jobs.contracts.problems import Problem, escaped

NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")
LARGEST = 1e300
WHOLE = re.compile(r"[-+]?\d{1,18}")


class Refused(Exception):
    """A text that is not taken; `problems` say why, as pointers into what was read."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("; ".join(f"{p.pointer}: {p.message}" for p in problems))
        self.problems = tuple(problems)


def refusal(pointer: str, message: str) -> Refused:
    """Return the refusal of one thing."""
    return Refused([Problem(pointer, message)])


@contextmanager
def gathering(found: list[Problem]) -> Iterator[None]:
    """Go on after a refusal, keeping its problems: all of a text's problems are told at once."""
    try:
        yield
    except Refused as refused:
        found += refused.problems


class Item(NamedTuple):
    """A value of the text, and where it stands."""

    value: Any
    pointer: str

    def refuse(self, message: str) -> Refused:
        """Return the refusal of this value."""
        return refusal(self.pointer, message)

    def object(self) -> "Object":
        """Return it as an object."""
        if not isinstance(self.value, dict):
            raise self.refuse(f"an object belongs here, not {shown(self.value)}")
        return Object(self.value, self.pointer)

    def items(self) -> list["Item"]:
        """Return the entries of a list."""
        if not isinstance(self.value, list):
            raise self.refuse(f"a list belongs here, not {shown(self.value)}")
        return [Item(value, f"{self.pointer}/{i}") for i, value in enumerate(self.value)]

    def text(self) -> str:
        """Return it as text."""
        if not isinstance(self.value, str):
            raise self.refuse(f"a text belongs here, not {shown(self.value)}")
        return self.value

    def flag(self) -> bool:
        """Return it as true or false."""
        if not isinstance(self.value, bool):
            raise self.refuse(f"true or false belongs here, not {shown(self.value)}")
        return self.value

    def number(self) -> int | float:
        """Return it as a finite number; one written as text counts, as several formats do so."""
        value = self.value
        if isinstance(value, str) and NUMBER.fullmatch(value):
            value = int(value) if WHOLE.fullmatch(value) else float(value)
        if not isinstance(value, int | float) or isinstance(value, bool) or not _is_finite(value):
            raise self.refuse(f"a finite number belongs here, not {shown(self.value)}")
        return value

    def whole(self) -> int:
        """Return it as a whole number."""
        value = self.number()
        if value != int(value):
            raise self.refuse(f"a whole number belongs here, not {shown(self.value)}")
        return int(value)

    def scalar(self) -> Value:
        """Return it as a text, number or yes/no."""
        if isinstance(self.value, bool | str):
            return self.value
        if not isinstance(self.value, int | float) or not _is_finite(self.value):
            raise self.refuse(f"a text, a number or true/false belongs here, not {shown(self.value)}")
        return self.value

    def one_of(self, options: Iterable[str]) -> str:
        """Return it as one of some texts."""
        if self.value not in (known := list(options)):
            raise self.refuse(f"{shown(self.value)} is none of {', '.join(known)}")
        return str(self.value)


class Object:
    """An object of the text; at the end `done` refuses the keys that nobody asked for."""

    def __init__(self, value: dict[str, Any], pointer: str) -> None:
        self._value = value
        self._left = dict.fromkeys(value)
        self.pointer = pointer

    def refuse(self, message: str) -> Refused:
        """Return the refusal of the whole object."""
        return refusal(self.pointer, message)

    def get(self, name: str) -> Item | None:
        """Return an entry that may be missing or null."""
        self._left.pop(name, None)
        value = self._value.get(name)
        return None if value is None else Item(value, self.place(name))

    def place(self, name: str) -> str:
        """Return the pointer of an entry."""
        return f"{self.pointer}/{escaped(name)}"

    def need(self, name: str) -> Item:
        """Return an entry that must be there."""
        found = self.get(name)
        if found is None:
            raise self.refuse(f"{name!r} is missing")
        return found

    def has(self, name: str) -> bool:
        """Say whether an entry is there, without asking for it."""
        return self._value.get(name) is not None

    def entries(self) -> Iterator[tuple[str, Item]]:
        """List all entries, whatever their names."""
        for name in self._value:
            self._left.pop(name, None)
            yield name, Item(self._value[name], self.place(name))

    def left_out(self, *names: str, why: str) -> list[str]:
        """Ask for entries that are not taken; return a note for those that are there."""
        there = [name for name in names if self.get(name) is not None]
        return [f"{', '.join(there)}: {why}"] if there else []

    def done(self) -> None:
        """Refuse the keys that nobody asked for."""
        problems = [
            Problem(self.place(name), f"{name!r} has no counterpart here")
            for name in self._left
            if self._value[name] is not None
        ]
        if problems:
            raise Refused(problems)


def shown(value: Any) -> str:
    """Return a value as a sentence shows it."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"


def _is_finite(value: int | float) -> bool:
    return abs(value) < LARGEST  # not so for NaN either
