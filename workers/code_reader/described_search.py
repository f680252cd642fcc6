"""Reads the search that a pasted file describes: a tuner of KerasTuner, and its call of `search`."""

import ast
import math
from collections.abc import Iterator, Mapping
from typing import Any

from jobs.messages.code import CallbackOfCode, CodeSearch
from workers.code_reader.modules import Module, printable

TUNERS = ("RandomSearch", "BayesianOptimization", "Hyperband", "GridSearch")
POSITIONAL = {
    "Hyperband": ("hypermodel", "objective", "max_epochs", "factor", "hyperband_iterations"),
}
"""The first arguments of a tuner by their places."""
FIRST = ("hypermodel", "objective", "max_trials")
NO_FIELD = frozenset(
    {"overwrite", "directory", "project_name", "logger", "verbose", "x", "y", "validation_data"}
)
"""Arguments that an experiment does not need."""
EARLY_STOPPING = "EarlyStopping"
BEST_FIRST = {"max": "max", "min": "min"}


def search_of(module: Module) -> CodeSearch | None:
    """Return the last search of a file; None if it makes no tuner."""
    constants = _constants(module)
    tuners = [call for call in _calls(module.tree) if _tuner(module, call)]
    if not tuners:
        return None
    tuner = tuners[-1]
    name = _tuner(module, tuner)
    given = _arguments(tuner, POSITIONAL.get(name, FIRST))
    searches = [
        call
        for call in _calls(module.tree)
        if isinstance(call.func, ast.Attribute) and call.func.attr == "search" and call.lineno >= tuner.lineno
    ]
    searched = _arguments(searches[0], ("x", "y")) if searches else {}
    metric, direction = _objective(module, given.get("objective"), constants)
    found = _Numbers({**given, **searched}, constants)
    stopping = _early_stopping(module, searched.get("callbacks"), constants)
    taken = {"hypermodel", "objective", "epochs", "callbacks", *found.names, *NO_FIELD}
    left_out = [printable(each) for each in (*given, *searched) if each not in taken]
    left_out += [printable(each) for each in _other_callbacks(module, searched.get("callbacks"), constants)]
    left_out += _further_objectives(module, given.get("objective"), constants)
    return CodeSearch(
        path=module.path,
        line=tuner.lineno,
        tuner=name,
        entry=_entry(module, given.get("hypermodel"), constants),
        metric=metric,
        direction=direction,
        max_trials=found.whole("max_trials"),
        executions=found.whole("executions_per_trial"),
        seed=found.whole("seed"),
        max_epochs=found.whole("max_epochs"),
        factor=found.whole("factor"),
        iterations=found.whole("hyperband_iterations"),
        epochs=found.whole("epochs"),
        batch_size=found.whole("batch_size"),
        validation_split=found.number("validation_split"),
        early_stopping=stopping,
        left_out=left_out + found.unknown,
    )


class _Numbers:
    """Reads arguments that are numbers."""

    names = frozenset(
        {
            "max_trials", "executions_per_trial", "seed", "max_epochs", "factor", "hyperband_iterations",
            "epochs", "batch_size", "validation_split",
        }
    )  # fmt: skip

    def __init__(self, given: Mapping[str, ast.expr], constants: Mapping[str, ast.expr]) -> None:
        self._given = given
        self._constants = constants
        self.unknown: list[str] = []

    def number(self, name: str) -> float | None:
        """Return an argument; None if it is not given, or not known."""
        node = self._given.get(name)
        value = _finite(_literal(node, self._constants))
        if node is not None and value is None and not (isinstance(node, ast.Constant) and node.value is None):
            self.unknown.append(name)
        return value

    def whole(self, name: str) -> int | None:
        """Return an argument that is a whole number."""
        value = self.number(name)
        return int(value) if value is not None and value == int(value) and value >= 0 else None


def _finite(value: object) -> float | None:
    """Return a number that can be stored; None for any other value."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return value if math.isfinite(value) else None
    except OverflowError:
        # A whole number with hundreds of digits.
        return None


def _calls(tree: ast.AST) -> list[ast.Call]:
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return sorted(calls, key=lambda call: (call.lineno, call.col_offset))


def _tuner(module: Module, call: ast.Call) -> str:
    """Return the name of the tuner that a call makes; empty for other calls."""
    name = module.full_name(call.func)
    last = name.rpartition(".")[2]
    return last if last in TUNERS and name.partition(".")[0] in ("keras_tuner", "kerastuner") else ""


def _arguments(call: ast.Call, names: tuple[str, ...]) -> dict[str, ast.expr]:
    given = dict(zip(names, call.args, strict=False))
    return given | {each.arg: each.value for each in call.keywords if each.arg is not None}


def _constants(module: Module) -> dict[str, ast.expr]:
    """Return the expressions that the file's assignments bind to single names; the last one counts."""
    return {
        target.id: node.value
        for node in module.tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def _literal(node: ast.expr | None, constants: Mapping[str, ast.expr]) -> Any:
    if isinstance(node, ast.Name):
        node = constants.get(node.id)
    try:
        return None if node is None else ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None


def _objective(
    module: Module, node: ast.expr | None, constants: Mapping[str, ast.expr]
) -> tuple[str | None, Any]:
    if isinstance(node, ast.Name):
        node = constants.get(node.id, node)
    if isinstance(node, ast.List | ast.Tuple) and node.elts:
        return _objective(module, node.elts[0], constants)
    if isinstance(node, ast.Call) and module.full_name(node.func).rpartition(".")[2] == "Objective":
        given = _arguments(node, ("name", "direction"))
        metric = _literal(given.get("name"), constants)
        direction = _literal(given.get("direction"), constants)
        return (printable(metric) if isinstance(metric, str) else None), BEST_FIRST.get(str(direction))
    metric = _literal(node, constants)
    return (printable(metric) if isinstance(metric, str) else None), None


def _further_objectives(
    module: Module, node: ast.expr | None, constants: Mapping[str, ast.expr]
) -> Iterator[str]:
    """Yield the objectives of a list after its first one, which alone is proposed."""
    if isinstance(node, ast.Name):
        node = constants.get(node.id, node)
    for part in node.elts[1:] if isinstance(node, ast.List | ast.Tuple) else ():
        yield f"the objective {_objective(module, part, constants)[0] or 'after the first'}"


def _entry(module: Module, node: ast.expr | None, constants: Mapping[str, ast.expr]) -> str | None:
    """Return the name of the function or class that a tuner gets."""
    if isinstance(node, ast.Name) and isinstance(bound := constants.get(node.id), ast.Call):
        node = bound if module.full_name(bound.func)[:1].isupper() else node
    if isinstance(node, ast.Call):
        node = node.func
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Call):
        # `Net().build_model` is the entry `Net.build_model`.
        return printable(f"{module.full_name(node.value.func)}.{node.attr}")
    return printable(module.full_name(node)) if isinstance(node, ast.Name) else None


def _callbacks(node: ast.expr | None, constants: Mapping[str, ast.expr]) -> Iterator[ast.Call]:
    if isinstance(node, ast.Name):
        node = constants.get(node.id)
    for each in node.elts if isinstance(node, ast.List | ast.Tuple) else [node]:
        made = constants.get(each.id) if isinstance(each, ast.Name) else each
        if isinstance(made, ast.Call):
            yield made


def _early_stopping(
    module: Module, node: ast.expr | None, constants: Mapping[str, ast.expr]
) -> CallbackOfCode | None:
    for call in _callbacks(node, constants):
        if module.full_name(call.func).rpartition(".")[2] == EARLY_STOPPING:
            given = _arguments(call, ("monitor", "min_delta", "patience"))
            values = {name: _literal(value, constants) for name, value in given.items()}
            monitor, patience = values.get("monitor"), values.get("patience")
            return CallbackOfCode(
                monitor=printable(monitor) if isinstance(monitor, str) else "val_loss",
                patience=patience if isinstance(patience, int) and _finite(patience) and patience >= 0 else 0,
                min_delta=abs(float(_finite(values.get("min_delta")) or 0.0)),
                restore_best=values.get("restore_best_weights") is True,
            )
    return None


def _other_callbacks(
    module: Module, node: ast.expr | None, constants: Mapping[str, ast.expr]
) -> Iterator[str]:
    for call in _callbacks(node, constants):
        name = module.full_name(call.func).rpartition(".")[2]
        if name != EARLY_STOPPING:
            yield f"the callback {name}"
