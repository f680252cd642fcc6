"""Writes layout rules for chosen variables, with few patterns that match these variables alone."""

import re
from collections.abc import Iterator, Mapping, Sequence

from jobs.spec.checks import patterns
from jobs.spec.plan.mesh.placement import Axes
from jobs.spec.sections.mesh import LayoutRule

MAX_PATTERN = 300
"""The most characters in a rule's pattern, as in the spec."""
_NUMBER = re.compile(r"\d+(?![A-Za-z])", re.ASCII)
"""A number in a name, such as that of `dense_1`; the 2 of `conv2d` is none."""
_LAST_NUMBER = re.compile(rf"_?{_NUMBER.pattern}", re.ASCII)


def rules_for_paths(wanted: Mapping[str, Axes], paths: Sequence[str]) -> tuple[LayoutRule, ...]:
    """Return rules that divide the wanted variables and match no other one.

    The broadest pattern is taken whose matches are all wanted with the same axes: that of the last part of
    the path, of the last two parts, of the path with any numbers, or of the path alone. No two rules match
    one variable, so their order has no meaning.

    Args:
        wanted: the axes of the variables to divide, by path.
        paths: the paths of all variables of the model.
    """
    rules: list[LayoutRule] = []
    taken: set[str] = set()
    found: dict[str, set[str]] = {}
    for path in dict.fromkeys(paths):
        if path in taken or path not in wanted:
            continue
        for pattern in _candidates(path):
            if pattern not in found:
                found[pattern] = {other for other in paths if patterns.matches_all_of(pattern, other)}
            matched = found[pattern]
            if matched.isdisjoint(taken) and all(wanted.get(other) == wanted[path] for other in matched):
                rules.append(LayoutRule(match=pattern, axes=wanted[path]))
                taken |= matched
                break
    return tuple(rules)


def _candidates(path: str) -> Iterator[str]:
    """Yield the patterns that match a path, from the broadest to the path alone.

    A path that is too long for a pattern has none, so its variable stays whole.
    """
    parts = path.split("/")
    broad = [".*/" + "/".join(map(re.escape, parts[-length:])) for length in range(1, min(len(parts), 3))]
    for pattern in (*broad, any_numbers(path), re.escape(path)):
        if len(pattern) <= MAX_PATTERN and patterns.refusal(pattern) is None:
            yield pattern


def any_numbers(path: str) -> str:
    """Return a pattern for a path and all others that differ only in their numbers."""
    return r"\d+".join(re.escape(text) for text in _NUMBER.split(path))


def without_numbers(path: str) -> str:
    """Return a path without its numbers: Keras names layers `dense`, `dense_1`, `dense_2`."""
    return _LAST_NUMBER.sub("", path)
