"""Passes the arguments of a script that have no names: each by its place."""

import re
from collections.abc import Mapping, Sequence

from jobs.messages.code import CodeArgument
from jobs.messages.script_values import ArgumentRefused, literal, passed_values

PATTERNS = {"?": "A?", "*": "A*", "+": "A+"}
"""How many texts argparse gives to a place: as many as fit, the first places first."""


def passed_places(places: Sequence[CodeArgument], given: Mapping[int, list[str]]) -> list[str]:
    """Return the texts for places so that each one gets its own; earlier ones may get their defaults.

    Args:
        places: all arguments without names, in their order.
        given: the texts of those that have a value, by their number in `places`.

    Raises:
        ArgumentRefused: a text would arrive at another place.
    """
    if not given:
        return []
    before = places[: max(given) + 1]
    texts = [given.get(number, []) for number in range(len(before))]
    if not _arrive(before, texts):
        texts = [given[i] if i in given else _default_of(place) for i, place in enumerate(before)]
    if not _arrive(before, texts):
        name = before[-1].name
        missing = [place.name for number, place in enumerate(before) if number not in given]
        advice = f"give {', '.join(missing)} too" if missing else "the script does not know where one ends"
        raise ArgumentRefused(name, f"it has no name, so it would be read as an earlier argument; {advice}")
    return [text for value in texts for text in value]


def _arrive(places: Sequence[CodeArgument], texts: Sequence[list[str]]) -> bool:
    """Return whether each place gets its own texts."""
    patterns = [f"({_pattern(place.nargs)})" for place in places]
    match = re.fullmatch("".join(patterns), "A" * sum(map(len, texts)))
    return match is not None and [len(group) for group in match.groups()] == [len(value) for value in texts]


def _pattern(nargs: str | None) -> str:
    if nargs is not None and nargs.isdigit():
        return f"A{{{nargs}}}"
    return "A" if nargs is None else PATTERNS.get(nargs, "A*")


def _default_of(place: CodeArgument) -> list[str]:
    """Return the texts that mean a place's default; none if it is not known."""
    default = literal(place.default)
    if isinstance(default, list | tuple):
        default = list(default)
    elif not isinstance(default, str | int | float):
        return []
    try:
        return passed_values(place, place.name, default)
    except ArgumentRefused:
        return []
