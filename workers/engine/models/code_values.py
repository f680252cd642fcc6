"""Chooses the values of KerasTuner's hyperparameters with which code may declare further ones."""

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from jobs.spec.space.search_space import Value

MAX_CHOICES = 20
"""Values of one choice that are tried."""
MAX_INTEGERS = 8
"""Integers with up to so many values are tried with each."""
MAX_THRESHOLDS = 6
"""Numbers of the code's comparisons that are tried for one hyperparameter."""
PARTS = (0.25, 0.5, 0.75)
"""Places inside of a range of numbers that are tried together with values of others."""


def values_of(parameter: Any, thresholds: Iterable[float] = ()) -> list[Value]:
    """Return the values with which a hyperparameter may reveal others, ascending.

    Args:
        parameter: of KerasTuner.
        thresholds: the numbers with which the code compares.
    """
    kind = type(parameter).__name__
    if kind == "Boolean":
        return [False, True]
    if kind == "Choice":
        return list(parameter.values)[:MAX_CHOICES]
    if kind not in ("Int", "Float"):
        return []
    low, high = parameter.min_value, parameter.max_value
    if kind == "Int" and _is_linear(parameter) and (high - low) // (parameter.step or 1) < MAX_INTEGERS:
        return list(range(low, high + 1, parameter.step or 1))
    # A number alone seldom decides about others, but each of a loop's does.
    ends = {low, _snapped(parameter, high)} if kind == "Int" else set()
    inside = sorted({number for number in thresholds if low <= number <= high})[:MAX_THRESHOLDS]
    return sorted({*ends, *(value for number in inside for value in _around(parameter, number))})


def spread_values_of(parameter: Any, thresholds: Iterable[float] = ()) -> list[Value]:
    """Return `values_of`, and for a range of numbers its ends and some numbers inside of it."""
    values = values_of(parameter, thresholds)
    if type(parameter).__name__ not in ("Int", "Float"):
        return values
    low, high = parameter.min_value, parameter.max_value
    return sorted({*values, *(_snapped(parameter, low + (high - low) * part) for part in (0, *PARTS, 1))})


def _is_linear(parameter: Any) -> bool:
    return parameter.sampling in (None, "linear")


def _around(parameter: Any, number: float) -> Iterator[Value]:
    """Yield the values at a threshold and on both sides of it."""
    low, high = parameter.min_value, parameter.max_value
    step = parameter.step if parameter.step and _is_linear(parameter) else None
    beside = step or (1 if type(parameter).__name__ == "Int" else None)
    for value in (
        number,
        number - beside if beside else (low + number) / 2,
        number + beside if beside else (number + high) / 2,
    ):
        if low <= value <= high:
            yield _snapped(parameter, value)


def _snapped(parameter: Any, value: float) -> Value:
    """Return the nearest value that a search can draw."""
    low, high, step = parameter.min_value, parameter.max_value, parameter.step
    if step and _is_linear(parameter):
        value = low + round((value - low) / step) * step
        value = value - step if value > high else value
    return round(value) if type(parameter).__name__ == "Int" else float(min(max(value, low), high))


def thresholds_in(folder: Path) -> frozenset[float]:
    """Return the numbers with which the files in a folder compare. They are read, not executed."""
    numbers: set[float] = set()
    for path in sorted(folder.rglob("*.py")):
        try:
            tree = ast.parse(path.read_bytes())
            numbers |= _compared(tree)
        except (SyntaxError, ValueError, OSError, RecursionError, MemoryError):
            continue
    return frozenset(numbers)


def _compared(tree: ast.Module) -> set[float]:
    named: dict[str, float] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and (number := _number(node.value)) is not None:
            named |= {target.id: number for target in node.targets if isinstance(target, ast.Name)}
    parts = [
        part
        for node in ast.walk(tree)
        for side in _sides(node)
        for part in (side.elts if isinstance(side, ast.Tuple | ast.List | ast.Set) else [side])
    ]
    numbers = (named.get(part.id) if isinstance(part, ast.Name) else _number(part) for part in parts)
    return {number for number in numbers if number is not None}


def _sides(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, ast.Compare):
        return [node.left, *node.comparators]
    return [node.value] if isinstance(node, ast.MatchValue) else []


def _number(node: ast.expr) -> float | None:
    value = node.value if isinstance(node, ast.Constant) else None
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None
