"""Reads the hyperparameters that a pasted file gives to a tuner: `RandomSearch(…, hyperparameters=hp)`."""

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from workers.code_reader.modules import Module, constant, printable
from workers.code_reader.uses import executed

HYPERPARAMETERS = "hyperparameters"
NEW_ENTRIES = "tune_new_entries"
OTHERS_FIXED = "tune_new_entries=False: fix the other hyperparameters in the form"
ARGUMENTS = {
    "Int": ("name", "min_value", "max_value", "step", "sampling", "default"),
    "Float": ("name", "min_value", "max_value", "step", "sampling", "default"),
    "Choice": ("name", "values", "ordered", "default"),
    "Boolean": ("name", "default"),
    "Fixed": ("name", "value"),
}
"""The arguments of the methods of KerasTuner's hyperparameters, by their places."""


@dataclass
class DescribedSpace:
    """The hyperparameters of a tuner, in place of those that its code declares.

    Attributes:
        rows: of a search space.
        fixed: the values of those that are not searched.
        left_out: those that cannot be read, and settings that an experiment does not have.
    """

    rows: list[dict[str, Any]] = field(default_factory=list)
    fixed: dict[str, Any] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)


def described_space(module: Module, tuner: ast.Call, arguments: Mapping[str, ast.expr]) -> DescribedSpace:
    """Return the hyperparameters that a tuner gets.

    Args:
        module: the file.
        tuner: the call that makes the tuner.
        arguments: of that call.
    """
    space = DescribedSpace()
    given = arguments.get(HYPERPARAMETERS)
    if isinstance(given, ast.Name):
        _read(module, given.id, tuner.lineno, space)
    is_given = given is not None and not isinstance(given, ast.Constant)
    if is_given and not (space.rows or space.fixed or space.left_out):
        space.left_out.append(HYPERPARAMETERS)
    if constant(arguments.get(NEW_ENTRIES)) is False:
        space.left_out.append(OTHERS_FIXED)
    elif NEW_ENTRIES in arguments and constant(arguments[NEW_ENTRIES]) is not True:
        space.left_out.append(NEW_ENTRIES)
    return space


def _read(module: Module, name: str, line: int, space: DescribedSpace) -> None:
    for node in module.tree.body:
        if node.lineno >= line:
            return
        if isinstance(node, ast.Assign) and any(
            isinstance(t, ast.Name) and t.id == name for t in node.targets
        ):
            # Another object of the same name begins.
            space.rows, space.fixed, space.left_out = [], {}, []
            continue
        is_plain = isinstance(node, ast.Expr | ast.Assign)
        calls = [part for part in executed(node) if isinstance(part, ast.Call) and _is_method_of(part, name)]
        for call in sorted(calls, key=lambda call: (call.lineno, call.col_offset)):
            if not (is_plain and _add(call, space)):
                space.left_out.append(printable(f"the hyperparameter in line {call.lineno}"))


def _is_method_of(call: ast.Call, name: str) -> bool:
    function = call.func
    return (
        isinstance(function, ast.Attribute)
        and function.attr in ARGUMENTS
        and isinstance(function.value, ast.Name)
        and function.value.id == name
    )


def _add(call: ast.Call, space: DescribedSpace) -> bool:
    """Add a hyperparameter, and return whether it could be read."""
    from jobs.spec.formats import keras_tuner
    from jobs.spec.formats.reading import FormatError, Item

    kind = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    given = dict(zip(ARGUMENTS[kind], call.args, strict=False))
    given |= {each.arg: each.value for each in call.keywords if each.arg is not None}
    try:
        values = {name: ast.literal_eval(value) for name, value in given.items()}
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return False
    config = {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}
    config = {name: value for name, value in config.items() if value is not None}
    try:
        document = {"space": [{"class_name": kind, "config": config}]}
        rows = keras_tuner.read(Item(document, "")).search["space"]
    except FormatError:
        return False
    for row in rows:
        if row["kind"] == "fixed":
            space.fixed[row["name"]] = row["value"]
        else:
            space.rows.append(row)
    return True
