"""Limits a spec's size, so that checking and planning it takes a web process about a second at most.

The limits are not validators in the spec's classes, since specs that were stored before a limit existed must
still be read.
"""

import json
from collections.abc import Iterator
from typing import Any

from jobs.spec.checks import patterns
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.problems import Problem
from jobs.spec.space.search_space import ChoiceParameter, Space

MAX_CHARACTERS = 500_000
"""The most characters in a spec as JSON. A choice among 10,000 numbers has a tenth of this."""
MAX_RULES = 200
"""The most layout rules, and the most precision overrides."""
MAX_INSTRUCTIONS = 5000
"""The most instructions in all compiled patterns together; one such as `.*/(kernel|bias)` has about 30."""
MAX_VALUES = 20_000
"""The most values that a search space lists in choices and conditions together."""
MAX_CLASS_WEIGHTS = 2000


def text_problem(body: Any) -> Problem | None:
    """Return the problem if a body is too long to be parsed as a spec or as part of one."""
    length = len(json.dumps(body, ensure_ascii=False, separators=(",", ":")))
    if length <= MAX_CHARACTERS:
        return None
    return Problem("", f"it has {length:,} characters; at most {MAX_CHARACTERS:,} are accepted")


def problems(spec: ExperimentSpec) -> Iterator[Problem]:
    """Yield the parts that are too large for the other checks."""
    rules = spec.mesh.layout if spec.mesh is not None else ()
    overrides = spec.precision.overrides
    yield from _above_limit("/mesh/layout", "rules", len(rules), MAX_RULES)
    yield from _above_limit("/precision/overrides", "overrides", len(overrides), MAX_RULES)
    if max(len(rules), len(overrides)) <= MAX_RULES:
        place = "/mesh/layout" if rules else "/precision/overrides"
        yield from pattern_problems(
            place, [*(rule.match for rule in rules), *(override.match for override in overrides)]
        )
    if isinstance(weights := spec.fit.class_weights, dict):
        yield from _above_limit("/fit/class_weights", "weights", len(weights), MAX_CLASS_WEIGHTS)
    if spec.search is not None:
        yield from space_problems(spec.search.space, "/search/space")


def space_problems(space: Space, pointer: str) -> Iterator[Problem]:
    """Yield a problem if a search space lists too many values."""
    yield from _above_limit(pointer, "listed values", _values(space), MAX_VALUES)


def pattern_problems(place: str, matches: list[str]) -> Iterator[Problem]:
    """Yield a problem if patterns are too large together."""
    if sum(map(patterns.size, matches)) > MAX_INSTRUCTIONS:
        yield Problem(place, "the patterns together are too large: use fewer, or smaller numbers in {…}")


def _above_limit(pointer: str, noun: str, number: int, most: int) -> Iterator[Problem]:
    if number > most:
        yield Problem(pointer, f"{number:,} {noun}; at most {most:,} are accepted")


def _values(space: Space) -> int:
    """Count the values that a space lists in choices and conditions."""
    listed = sum(len(parameter.values) for parameter in space if isinstance(parameter, ChoiceParameter))
    return listed + sum(len(condition.in_) for parameter in space for condition in parameter.conditions())
