"""Passes the arguments of a script that have no names: each by its place."""

import re
from collections.abc import Mapping, Sequence

from jobs.messages.code import CodeArgument
from jobs.messages.script_values import NEGATIVE, ArgumentRefused, literal, passed_values

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


def joined(
    given: list[str],
    options: list[list[str]],
    rest: str = "",
    *,
    is_last: bool = True,
    is_parsed: bool = True,
) -> list[str]:
    """Return the arguments without names before the options, or after `--` if one begins with a dash.

    Args:
        given: the texts without names.
        options: the options with their values.
        rest: the name of a place that takes all texts that follow, options and `--` too.
        is_last: whether no command follows.
        is_parsed: whether a parser reads them, which knows `--`.

    Raises:
        ArgumentRefused: the first text would be read as an option.
    """
    named_ones = [text for texts in options for text in texts]
    # Only argparse takes a negative number for no option, unless an option of its own looks like one.
    dashed = [text for text in given if text.startswith("-") and (is_last or not NEGATIVE.fullmatch(text))]
    if rest:
        if given[:1] == dashed[:1] != []:
            raise ArgumentRefused(rest, f"{given[0]!r} begins with a dash, so it would be read as an option")
        return [*named_ones, *given]
    if dashed and is_parsed:
        return [*named_ones, "--", *given]
    return [*given, *named_ones]


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
