"""Reads the searches and the training that a pasted file describes.

A search is a tuner of KerasTuner and its call of `search`; a training is the call of a model's `fit`.
"""

import ast
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jobs.messages.code import CallbackOfCode, CodeNotice, CodeSearch
from workers.code_reader.described_space import HYPERPARAMETERS, NEW_ENTRIES, described_space
from workers.code_reader.modules import Module, constant, printable
from workers.code_reader.tuners import SEARCHES, tuner_of

LAST = (
    "seed", "hyperparameters", "tune_new_entries", "allow_new_entries", "max_retries_per_trial",
    "max_consecutive_failed_trials",
)  # fmt: skip
FIRST = ("hypermodel", "objective", "max_trials")
POSITIONAL = {
    "RandomSearch": (*FIRST, *LAST),
    "GridSearch": (*FIRST, *LAST),
    "BayesianOptimization": (*FIRST, "num_initial_points", "alpha", "beta", *LAST),
    "Hyperband": ("hypermodel", "objective", "max_epochs", "factor", "hyperband_iterations", *LAST),
}
"""The arguments of a tuner by their places."""
OF_FIT = (
    "x", "y", "batch_size", "epochs", "verbose", "callbacks", "validation_split", "validation_data",
    "shuffle",
)  # fmt: skip
"""Those of `fit`, to which `search` passes its own."""
NO_FIELD = frozenset(
    {"overwrite", "directory", "project_name", "logger", "verbose", "x", "y", "validation_data"}
)
"""Arguments that an experiment does not need."""
TEMPLATES = {"HyperResNet": "hyper_resnet", "HyperXception": "hyper_xception"}
"""The models of KerasTuner that are templates here."""
EARLY_STOPPING = "EarlyStopping"


def searches_of(module: Module) -> list[CodeSearch]:
    """Return the searches of a file in their order: one for each tuner that it makes."""
    calls = _calls(module.tree)
    tuners = [call for call in calls if _tuner(module, call)]
    searches = []
    for i, tuner in enumerate(tuners):
        end = tuners[i + 1].lineno if i + 1 < len(tuners) else math.inf
        searches.append(_search(module, tuner, [call for call in calls if tuner.lineno <= call.lineno < end]))
    return searches


def _search(module: Module, tuner: ast.Call, calls: Sequence[ast.Call]) -> CodeSearch:
    """Return the search of a tuner.

    Args:
        module: the file.
        tuner: the call that makes the tuner.
        calls: those from there to the next tuner.
    """
    searches = [call for call in calls if isinstance(call.func, ast.Attribute) and call.func.attr == "search"]
    # A name has the value that it was given last before the line.
    constants = _constants(module, (searches[0] if searches else tuner).lineno)
    name = _tuner(module, tuner)
    arguments = _arguments(tuner, POSITIONAL[name])
    searched = _arguments(searches[0], OF_FIT) if searches else {}
    entry = _entry(module, arguments.get("hypermodel"), _constants(module, tuner.lineno))
    return _described(module, tuner, {**arguments, **searched}, constants, tuner=name, entry=entry)


def notices_of_templates(searches: Sequence[CodeSearch]) -> Iterator[CodeNotice]:
    """Yield the searches over models of KerasTuner itself, which are templates here."""
    for search in searches:
        if (template := TEMPLATES.get(search.entry or "")) is not None:
            message = f"{search.entry} needs no code: an experiment has it as the template {template}"
            yield CodeNotice(path=search.path, line=search.line, message=message)


def training_of(module: Module, call: ast.Call, entry: str) -> CodeSearch:
    """Return the training that a call of a model's `fit` describes.

    Args:
        module: the file.
        call: of `fit`.
        entry: the function that builds the model.
    """
    constants = _constants(module, call.lineno)
    return _described(module, call, _arguments(call, OF_FIT), constants, tuner="", entry=entry)


def _described(
    module: Module,
    call: ast.Call,
    arguments: Mapping[str, ast.expr],
    constants: Mapping[str, ast.expr],
    *,
    tuner: str,
    entry: str | None,
) -> CodeSearch:
    metric, direction = _objective(module, arguments.get("objective"), constants)
    numbers = _Numbers(arguments, constants)
    space = described_space(module, call, arguments)
    shuffle = constant(arguments.get("shuffle"))
    taken = {"hypermodel", "objective", "callbacks", HYPERPARAMETERS, NEW_ENTRIES, *numbers.names, *NO_FIELD}
    taken |= {"shuffle"} if isinstance(shuffle, bool) else set()
    left_out = [printable(name) for name in arguments if name not in taken]
    left_out += [printable(text) for text in _other_callbacks(module, arguments.get("callbacks"), constants)]
    left_out += _further_objectives(module, arguments.get("objective"), constants)
    return CodeSearch(
        path=module.path,
        line=call.lineno,
        tuner=tuner,
        entry=entry,
        metric=metric,
        direction=direction,
        max_trials=numbers.whole("max_trials"),
        executions=numbers.whole("executions_per_trial"),
        seed=numbers.whole("seed"),
        max_epochs=numbers.whole("max_epochs"),
        factor=numbers.whole("factor"),
        iterations=numbers.whole("hyperband_iterations"),
        epochs=numbers.whole("epochs"),
        batch_size=numbers.whole("batch_size"),
        validation_split=numbers.number("validation_split"),
        early_stopping=_early_stopping(module, arguments.get("callbacks"), constants),
        max_failures=numbers.whole("max_consecutive_failed_trials"),
        shuffle=shuffle if isinstance(shuffle, bool) else None,
        space=space.rows,
        hyperparameters=space.fixed,
        left_out=left_out + space.left_out + numbers.unknown,
    )


class _Numbers:
    """Reads arguments that are numbers."""

    names = frozenset(
        {
            "max_trials", "executions_per_trial", "seed", "max_epochs", "factor", "hyperband_iterations",
            "epochs", "batch_size", "validation_split", "max_consecutive_failed_trials",
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
    """Return the tuner that a call makes if its search may be an experiment; else an empty text."""
    tuner = tuner_of(module.full_name(call.func))
    return tuner if tuner in SEARCHES else ""


def _arguments(call: ast.Call, names: tuple[str, ...]) -> dict[str, ast.expr]:
    """Return a call's arguments by name; those of `*values` and `**values` are named so."""
    given: dict[str, ast.expr] = {}
    for name, value in zip(names, call.args, strict=False):
        if isinstance(value, ast.Starred):
            given[f"*{ast.unparse(value.value)}"] = value.value
            break
        given[name] = value
    for each in call.keywords:
        given[each.arg or f"**{ast.unparse(each.value)}"] = each.value
    return given


def _constants(module: Module, line: int) -> dict[str, ast.expr]:
    """Return the expressions that assignments up to a line bind to single names; the last one counts."""
    return {
        target.id: node.value
        for node in module.tree.body
        if isinstance(node, ast.Assign) and node.lineno <= line
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
    direction = None
    if isinstance(node, ast.Call) and module.full_name(node.func).rpartition(".")[2] == "Objective":
        arguments = _arguments(node, ("name", "direction"))
        node, direction = arguments.get("name"), _literal(arguments.get("direction"), constants)
    metric = _literal(node, constants)
    return (
        printable(metric) if isinstance(metric, str) else None,
        direction if direction in ("min", "max") else None,
    )


def _further_objectives(
    module: Module, node: ast.expr | None, constants: Mapping[str, ast.expr]
) -> Iterator[str]:
    """Yield the objectives of a list after its first one, which alone is proposed."""
    if isinstance(node, ast.Name):
        node = constants.get(node.id, node)
    for part in node.elts[1:] if isinstance(node, ast.List | ast.Tuple) else ():
        yield f"the objective {_objective(module, part, constants)[0] or 'after the first'}"


def _entry(module: Module, node: ast.expr | None, constants: Mapping[str, ast.expr]) -> str | None:
    """Return the name of the function or class that a tuner gets, without that of its module."""
    if isinstance(node, ast.Name) and isinstance(bound := constants.get(node.id), ast.Call):
        node = bound if _last_name(module, bound.func)[:1].isupper() else node
    if isinstance(node, ast.Call):
        node = node.func
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Call):
        # `Net().build_model` is the entry `Net.build_model`.
        return printable(f"{_last_name(module, node.value.func)}.{node.attr}")
    return printable(_last_name(module, node)) or None if node is not None else None


def _last_name(module: Module, node: ast.expr) -> str:
    return module.full_name(node).rpartition(".")[2]


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
