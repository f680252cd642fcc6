"""Finds the models that a pasted file builds and trains outside of functions, and makes functions of them.

The guides of Keras build a model step by step, and then call its `fit`. An experiment needs a function that
builds the model again for each training.
"""

import ast
import builtins
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from workers.code_reader.modules import Module
from workers.code_reader.uses import Use, executed

FIT = "fit"
UNCHANGING = frozenset(
    {
        "summary", "evaluate", "predict", "predict_on_batch", "save", "save_weights", "export", "to_json",
        "get_config", "get_weights", "count_params",
    }
)  # fmt: skip
"""Methods of a model that a training does not depend on."""
KERAS = ("keras.", "tensorflow.keras.", "tf_keras.")
EFFECTS = frozenset({FIT, "train_on_batch", "adapt", "fit_transform"})
"""Methods that change their object, also where their result is assigned."""
DEFINITION = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
IMPORT_OR_DEFINITION = (ast.Import, ast.ImportFrom, *DEFINITION)


@dataclass
class TrainedModel:
    """A model that statements of a file build and train.

    Attributes:
        name: the variable's name.
        function: the name of the function that is made of the statements.
        call: the call of `fit`.
        statements: those that build the model, in their order.
        reads: the names of the module that the function needs.
        obstacle: why no function can be made; empty if one can.
    """

    name: str
    function: str
    call: ast.Call
    statements: list[ast.stmt] = field(default_factory=list)
    reads: set[str] = field(default_factory=set)
    obstacle: str = ""

    def text(self, module: Module) -> str:
        """Return the function that builds the model."""
        lines = [
            f"def {self.function}(hp):",
            f'    """Build the model that line {self.call.lineno} of the pasted file trains."""',
        ]
        for node in self.statements:
            lines += [f"    {line}".rstrip() for line in _text_of(module, node).splitlines()]
        return "\n".join([*lines, f"    return {self.name}", ""])


def trained_models(
    module: Module, uses: Mapping[int, Use], working: Sequence[ast.stmt]
) -> list[TrainedModel]:
    """Return the models that statements of a file build and train, one for each variable.

    Args:
        module: the file.
        uses: the names that each of its statements uses, by the statement's id.
        working: its statements that load data, train or show something.
    """
    calls: dict[str, list[tuple[int, ast.Call]]] = {}
    for place, node in enumerate(module.tree.body):
        if (call := _fit_in(node)) is not None and isinstance(call.func, ast.Attribute):
            calls.setdefault(_root(call.func), []).append((place, call))
    slices = (_Slice(module, uses, working, name, trainings) for name, trainings in calls.items())
    return [found.model for found in slices if found.is_model]


def _fit_in(node: ast.stmt) -> ast.Call | None:
    """Return the call in `model.fit(…)` and `history = model.fit(…)`."""
    value = node.value if isinstance(node, ast.Expr | ast.Assign) else None
    is_fit = (
        isinstance(value, ast.Call)
        and isinstance(value.func, ast.Attribute)
        and value.func.attr == FIT
        and isinstance(value.func.value, ast.Name)
    )
    return value if is_fit and isinstance(value, ast.Call) else None


class _Slice:
    """The statements on which a variable's model depends when it is trained."""

    def __init__(
        self,
        module: Module,
        uses: Mapping[int, Use],
        working: Sequence[ast.stmt],
        name: str,
        trainings: Sequence[tuple[int, ast.Call]],
    ) -> None:
        self._module, self._uses = module, uses
        self._body = module.tree.body
        self._working = {id(node) for node in working}
        self._shared = {*module.imported, *(node.name for node in self._body if isinstance(node, DEFINITION))}
        self._last = {node.name: node for node in self._body if isinstance(node, DEFINITION)}
        place, call = self._first_training(name, trainings)
        self.model = TrainedModel(name, self._free_name(name), call)
        self.is_model = False
        self._collect(name, place)

    def _first_training(self, name: str, trainings: Sequence[tuple[int, ast.Call]]) -> tuple[int, ast.Call]:
        """Return the first call of `fit` of the variable's last model that is trained.

        A second one continues the first, as after layers were unfrozen.
        """
        end = trainings[-1][0]
        bound = [
            place
            for place, node in enumerate(self._body[:end])
            if name in self._uses[id(node)].binds and id(node) not in self._working
        ]
        begin = bound[-1] if bound else 0
        return next(training for training in trainings if training[0] > begin or training[0] == end)

    def _free_name(self, name: str) -> str:
        taken = {each for node in self._body for each in self._uses[id(node)].binds}
        return next(each for each in (f"build_{name}", f"build_trained_{name}") if each not in taken)

    def _collect(self, name: str, place: int) -> None:
        needed, found = {name}, list[ast.stmt]()
        for node in reversed(self._body[:place]):
            use = self._uses[id(node)]
            if isinstance(node, IMPORT_OR_DEFINITION) or not self._changes(node, needed):
                continue
            if id(node) in self._working:
                if not use.binds & needed and _methods_of(node, needed) <= UNCHANGING:
                    continue
                self._refuse(use.binds & needed or _changed(node) & needed, node)
                return
            if name in use.binds and isinstance(node, ast.Assign):
                self.is_model = self._is_model(node.value)
            found.append(node)
            own = use.binds
            if isinstance(node, ast.Assign | ast.AnnAssign):
                needed -= own
                # `x = layer(x)` needs the earlier one.
                own = set()
            needed |= use.reads - self._shared - own
        self.model.statements = found[::-1]
        self.model.reads = {each for node in found for each in self._uses[id(node)].reads}
        self._check_definitions(place)
        if unknown := sorted(needed - {*dir(builtins)}):
            self.model.obstacle = f"{unknown[0]} has no value before line {self.model.call.lineno}"

    def _changes(self, node: ast.stmt, needed: set[str]) -> bool:
        """Return whether a statement may change the objects that the model depends on."""
        if (self._uses[id(node)].binds | _changed(node)) & needed:
            return True
        if isinstance(node, ast.For):
            # `for layer in model.layers: layer.trainable = False`
            through = {part.id for part in ast.walk(node.iter) if isinstance(part, ast.Name)}
            return bool(through & needed and _changed(node) & self._uses[id(node)].binds)
        # A function of the file may change its arguments, as in `freeze(model)`.
        call = node.value if isinstance(node, ast.Expr) else None
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
            return False
        given = {part.id for each in call.args for part in ast.walk(each) if isinstance(part, ast.Name)}
        return call.func.id in self._last and bool(given & needed)

    def _refuse(self, names: set[str], node: ast.stmt) -> None:
        listed = ", ".join(sorted(names))
        self.model.obstacle = (
            f"it needs {listed}, which line {node.lineno} computes from data or by a training"
        )

    def _is_model(self, value: ast.expr) -> bool:
        """Return whether an expression may be a model of Keras: of its classes, or of the file's own."""
        if not isinstance(value, ast.Call):
            return False
        name = self._module.full_name(value.func)
        if name.startswith(KERAS):
            return True
        defined = self._last.get(name)
        if not isinstance(defined, ast.ClassDef):
            return defined is not None
        return any(self._is_keras_class(base) for base in defined.bases)

    def _is_keras_class(self, base: ast.expr) -> bool:
        name = self._module.full_name(base)
        parent = self._last.get(name)
        if isinstance(parent, ast.ClassDef):
            return any(self._is_keras_class(each) for each in parent.bases if each is not base)
        return name.startswith(KERAS)

    def _check_definitions(self, place: int) -> None:
        """Refuse a model whose functions or classes are defined again after its training."""
        waiting, seen = sorted(self.model.reads), set[str]()
        while waiting:
            name = waiting.pop()
            if name in seen or (node := self._last.get(name)) is None:
                continue
            seen.add(name)
            waiting += sorted(self._uses[id(node)].reads)
            if self._body.index(node) > place:
                self.model.obstacle = (
                    f"{name} is defined again in line {node.lineno}; paste the lines up to the training alone"
                )
                return


def _root(node: ast.expr) -> str:
    """Return the name at the beginning of an expression such as `model.layers[0].trainable`."""
    while not isinstance(node, ast.Name):
        if isinstance(node, ast.Attribute | ast.Subscript):
            node = node.value
        elif isinstance(node, ast.Call):
            node = node.func
        else:
            return ""
    return node.id


def _changed(node: ast.stmt) -> set[str]:
    """Return the names whose objects a statement changes: it calls a method, or sets an attribute."""
    return {name for name, method in _changes_in(node) if method not in UNCHANGING}


def _methods_of(node: ast.stmt, names: set[str]) -> set[str]:
    return {method for name, method in _changes_in(node) if name in names}


def _changes_in(node: ast.stmt) -> Iterator[tuple[str, str]]:
    """Yield the names whose methods a statement calls for their effect, with the method.

    The method is empty where it sets an attribute or an item. A value that is assigned comes of a method
    without an effect, such as `model.get_layer("a")`, unless it trains.
    """
    for part in executed(node):
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute):
            if not isinstance(node, ast.Assign | ast.AnnAssign) or part.func.attr in EFFECTS:
                yield _root(part.func), part.func.attr
        elif isinstance(part, ast.Attribute | ast.Subscript) and not isinstance(part.ctx, ast.Load):
            yield _root(part), ""


def _text_of(module: Module, node: ast.stmt) -> str:
    """Return a statement as it is written; unparsed if it shares a line or has a text of several lines."""
    end = node.end_lineno or node.lineno
    has_long_text = any(
        isinstance(part, ast.Constant | ast.JoinedStr) and part.lineno != part.end_lineno
        for part in ast.walk(node)
    )
    neighbours = [
        other for other in module.tree.body if other.lineno <= end and (other.end_lineno or 0) >= node.lineno
    ]
    if has_long_text or len(neighbours) > 1:
        return ast.unparse(node)
    return "".join(module.lines()[node.lineno - 1 : end])
