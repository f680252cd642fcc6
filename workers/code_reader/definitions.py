"""Finds the functions, classes and scripts of a version that Trainyard can use."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from jobs.contracts.code import MAX_TEXT, CodeArgument, CodeEntry, EntryKind
from workers.code_reader.modules import Module, constant, shown
from workers.code_reader.scripts import script_of

type Function = ast.FunctionDef | ast.AsyncFunctionDef

FUNCTIONS: dict[str, tuple[EntryKind, str]] = {
    "build_model": ("build_model", "hp"),
    "load_data": ("load_data", "split"),
    "preprocess": ("preprocess", "…"),
}
"""By the name of a function: its kind, and its one argument."""
HYPERMODEL = "HyperModel"
KERAS_CLASSES: dict[str, EntryKind] = {
    "Layer": "layer",
    "Metric": "metric",
    "Loss": "loss",
    "Model": "model",
    "Optimizer": "object",
    "Regularizer": "object",
    "Constraint": "object",
    "Initializer": "object",
}
KERAS = ("keras", "tf_keras", "tensorflow.keras")
METHODS = ("build", "fit")
REGISTER = "register_keras_serializable"
DEFAULT_PACKAGE = "Custom"
MOST_BASES = 20
"""Classes between a class and a base that is looked for."""


@dataclass(frozen=True)
class _Class:
    module: Module
    node: ast.ClassDef


class Definitions:
    """The classes of all modules of a version by name, so that bases in other files are found."""

    def __init__(self, modules: list[Module]) -> None:
        self._classes: dict[str, _Class] = {}
        for module in modules:
            for node in module.tree.body:
                if isinstance(node, ast.ClassDef):
                    self._classes.setdefault(node.name, _Class(module, node))

    def entries_of(self, module: Module) -> list[CodeEntry]:
        """Return the entries of one module, in the order of its lines."""
        found = list(self._in(module))
        if (script := script_of(module)) is not None:
            found.append(script)
        return found

    def _in(self, module: Module) -> Iterator[CodeEntry]:
        for node in module.tree.body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                if (function := _function(module, node)) is not None:
                    yield function
            elif isinstance(node, ast.ClassDef):
                entry = self._class(module, node)
                if entry is not None:
                    yield entry

    def _class(self, module: Module, node: ast.ClassDef) -> CodeEntry | None:
        lineage = self._lineage(_Class(module, node))
        kind = self._kind(lineage)
        registered = _registered(module, node)
        if kind is None and registered is None:
            return None
        methods = sorted({name for each in lineage for name in _methods(each.node)} & set(METHODS))
        is_hypermodel = kind == "hypermodel"
        return CodeEntry(
            kind=kind or "object",
            name=node.name[:MAX_TEXT],
            path=module.path,
            line=node.lineno,
            arguments=self._constructor(lineage),
            methods=methods if is_hypermodel else [],
            registered=registered,
            note="It has no method build(self, hp)." if is_hypermodel and "build" not in methods else "",
        )

    def _lineage(self, first: _Class) -> list[_Class]:
        """Return a class and its bases inside of the version, nearest first."""
        found: list[_Class] = []
        waiting, seen = [first], {first.node.name}
        while waiting and len(found) < MOST_BASES:
            found.append(here := waiting.pop(0))
            for base in here.node.bases:
                name = here.module.full_name(base).rpartition(".")[2]
                if name in self._classes and name not in seen:
                    seen.add(name)
                    waiting.append(self._classes[name])
        return found

    def _kind(self, lineage: list[_Class]) -> EntryKind | None:
        for each in lineage:
            for base in each.node.bases:
                package, _, name = each.module.full_name(base).rpartition(".")
                if name == HYPERMODEL:
                    return "hypermodel"
                if name in KERAS_CLASSES and package.startswith(KERAS):
                    return KERAS_CLASSES[name]
        return None

    def _constructor(self, lineage: list[_Class]) -> list[CodeArgument]:
        for each in lineage:
            for node in each.node.body:
                if isinstance(node, ast.FunctionDef) and node.name == "__init__":
                    return arguments_of(each.module, node)[1:]
        return []


def _methods(node: ast.ClassDef) -> set[str]:
    return {each.name for each in node.body if isinstance(each, ast.FunctionDef)}


def _function(module: Module, node: Function) -> CodeEntry | None:
    registered = _registered(module, node)
    if node.name in FUNCTIONS:
        kind, argument = FUNCTIONS[node.name]
        note = _why_not_callable(node, argument)
    elif registered is not None:
        kind, note = "object", ""
    else:
        return None
    return CodeEntry(
        kind=kind,
        name=node.name[:MAX_TEXT],
        path=module.path,
        line=node.lineno,
        arguments=arguments_of(module, node),
        registered=registered,
        note=note,
    )


def _why_not_callable(node: Function, argument: str) -> str:
    """Return why a function cannot be called with one argument; empty if it can."""
    given = node.args
    positional = [*given.posonlyargs, *given.args]
    required = len(positional) - len(given.defaults)
    missing = [None for default in given.kw_defaults if default is None]
    if isinstance(node, ast.AsyncFunctionDef):
        return "It is async; an ordinary function is needed."
    if (not positional and given.vararg is None) or required > 1 or missing:
        return f"It must be callable with one argument: {node.name}({argument})."
    return ""


def arguments_of(module: Module, node: Function) -> list[CodeArgument]:
    """Return the arguments of a function, with defaults and annotations as they are written."""
    given = node.args
    positional = [*given.posonlyargs, *given.args]
    defaults: list[ast.expr | None] = [None] * (len(positional) - len(given.defaults))
    pairs = [
        *zip(positional, [*defaults, *given.defaults], strict=True),
        *zip(given.kwonlyargs, given.kw_defaults, strict=True),
    ]
    found = [_argument(module, each, default) for each, default in pairs]
    for stars, more in (("*", given.vararg), ("**", given.kwarg)):
        if more is not None:
            found.append(_argument(module, more, None, stars))
    return found


def _argument(module: Module, each: ast.arg, default: ast.expr | None, stars: str = "") -> CodeArgument:
    return CodeArgument(
        name=f"{stars}{each.arg}"[:MAX_TEXT],
        default=module.source(default),
        annotation=module.source(each.annotation),
    )


def _registered(module: Module, node: Function | ast.ClassDef) -> str | None:
    """Return the name under which Keras saves an object that is decorated so."""
    for decorator in node.decorator_list:
        call = decorator if isinstance(decorator, ast.Call) else None
        name = module.full_name(call.func if call else decorator)
        if name.rpartition(".")[2] != REGISTER:
            continue
        given = {} if call is None else {each.arg: each.value for each in call.keywords}
        positional = [] if call is None else call.args
        package = constant(positional[0] if positional else given.get("package"))
        own = constant(positional[1] if len(positional) > 1 else given.get("name"))
        home = package if isinstance(package, str) else DEFAULT_PACKAGE
        return shown(f"{home}>{own if isinstance(own, str) else node.name}")
    return None
