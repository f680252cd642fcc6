"""Finds the functions, classes and scripts in a version that Trainyard can use."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from jobs.messages.code import MAX_TEXT, CodeArgument, CodeEntry, EntryKind
from workers.code_reader.builders import (
    HYPERPARAMETERS,
    Callable,
    builder_methods,
    called_names,
    named_builders,
    statements_of,
)
from workers.code_reader.functions import (
    arguments_of,
    function_entry,
    is_classmethod,
    registered_name,
    why_not_callable,
)
from workers.code_reader.modules import Module, printable
from workers.code_reader.scripts import script_of

HYPERMODEL = "HyperModel"
KERAS_CLASSES: dict[str, EntryKind] = {
    "Layer": "layer",
    "Metric": "metric",
    "Loss": "loss",
    "Model": "model",
    "Sequential": "model",
    "Functional": "model",
    "Optimizer": "object",
    "Regularizer": "object",
    "Constraint": "object",
    "Initializer": "object",
}
KERAS_MODULES: dict[str, EntryKind] = {
    "layers": "layer",
    "metrics": "metric",
    "losses": "loss",
    "models": "model",
    "optimizers": "object",
    "regularizers": "object",
    "constraints": "object",
    "initializers": "object",
}
"""The kinds of the other classes, by their module."""
KERAS = ("tensorflow.keras.", "tf_keras.", "keras.")
TUNER = ("keras_tuner.", "kerastuner.")
TUNER_APPLICATIONS = ("keras_tuner.applications", "kerastuner.applications")
METHODS = ("build", "fit")
GIVEN_ELSEWHERE = "Assign the lambda or the partial that gives the other arguments to a name."
MOST_BASES = 20
"""Classes between a class and a base that is looked for."""
MOST_IMPORTS = 5
"""Modules that import a class from one another."""


@dataclass(frozen=True)
class _Class:
    module: Module
    node: ast.ClassDef


class Definitions:
    """The classes in all modules of a version, so that bases in other files are found."""

    def __init__(self, modules: list[Module]) -> None:
        self._modules = {module.dotted: module for module in modules}
        self._files = {module.path: module for module in modules}
        self._classes: dict[tuple[str, str], _Class] = {}
        self._by_name: dict[str, _Class] = {}
        self._called = called_names(modules)
        for module in modules:
            for node in statements_of(module.tree):
                if isinstance(node, ast.ClassDef):
                    defined = _Class(module, node)
                    # As in Python, the last definition of a name counts.
                    self._classes[(module.path, node.name)] = defined
                    self._by_name.setdefault(node.name, defined)

    def entries_of(self, module: Module) -> list[CodeEntry]:
        """Return one module's entries, ordered by their lines."""
        by_name: dict[str, CodeEntry] = {}
        for entry in self._in(module, with_helpers=not self._has_builders):
            by_name.pop(entry.name, None)
            by_name[entry.name] = entry
        entries = sorted(by_name.values(), key=lambda entry: entry.line)
        if (script := script_of(module, self._files)) is not None:
            entries.append(script)
        return entries

    @cached_property
    def _has_builders(self) -> bool:
        """Whether a model can be built by a part of the code, so that helpers need not be named."""
        entries = (entry for module in self._files.values() for entry in self._in(module, with_helpers=False))
        return any(entry.kind in ("build_model", "hypermodel") for entry in entries)

    def _in(self, module: Module, *, with_helpers: bool) -> Iterator[CodeEntry]:
        builders = {
            id(node): (name, function, given) for name, node, function, given in named_builders(module)
        }
        for node in statements_of(module.tree):
            entry: CodeEntry | None = None
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                entry = function_entry(module, node)
            elif isinstance(node, ast.ClassDef):
                yield from self._methods(module, node)
                entry = self._class(module, node)
            elif (name := _application(module, node)) is not None:
                entry = CodeEntry(
                    kind="hypermodel", name=name, path=module.path, line=node.lineno, methods=["build"]
                )
            if entry is None and id(node) in builders:
                entry = self._builder(module, node, *builders[id(node)])
                if entry.note and entry.name in self._called:
                    # A helper needs further arguments, which a lambda without a name may give.
                    note = f"{entry.note} {GIVEN_ELSEWHERE}"
                    entry = entry.model_copy(update={"note": note}) if with_helpers else None
            if entry is not None:
                yield entry

    def _builder(
        self, module: Module, node: ast.stmt, name: str, function: Callable, given: int
    ) -> CodeEntry:
        """Return a function that takes hyperparameters."""
        note = why_not_callable(function, HYPERPARAMETERS, name=name, given=given)
        return CodeEntry(
            kind="build_model",
            name=name[:MAX_TEXT],
            path=module.path,
            line=node.lineno,
            arguments=arguments_of(module, function),
            note=note,
        )

    def _methods(self, module: Module, node: ast.ClassDef) -> Iterator[CodeEntry]:
        """Yield the methods of an ordinary class that take hyperparameters, as `Class.method`."""
        lineage = self._lineage(_Class(module, node))
        if self._kind(lineage) is not None:
            return
        for method, needs_instance in builder_methods(module, node):
            if method.name == "__init__":
                continue
            name = f"{node.name}.{method.name}"
            first = 1 if needs_instance or is_classmethod(module, method) else 0
            note = why_not_callable(method, HYPERPARAMETERS, name=name, given=first)
            if note and method.name in self._called:
                continue
            yield CodeEntry(
                kind="hypermodel" if needs_instance else "build_model",
                name=name[:MAX_TEXT],
                path=module.path,
                line=method.lineno,
                arguments=self._constructor(lineage)
                if needs_instance
                else arguments_of(module, method)[first:],
                methods=["build"] if needs_instance else [],
                note=note,
            )

    def _class(self, module: Module, node: ast.ClassDef) -> CodeEntry | None:
        lineage = self._lineage(_Class(module, node))
        kind = self._kind(lineage)
        registered = registered_name(module, node)
        if kind is None and registered is None:
            return None
        methods = sorted({name for base in lineage for name in _methods(base.node)} & set(METHODS))
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
        """Return a class and its bases inside the version, nearest first."""
        lineage: list[_Class] = []
        waiting, seen = [first], {id(first.node)}
        while waiting and len(lineage) < MOST_BASES:
            lineage.append(here := waiting.pop(0))
            for base in here.node.bases:
                parent = self._own(here, base)
                if parent is not None and id(parent.node) not in seen:
                    seen.add(id(parent.node))
                    waiting.append(parent)
        return lineage

    def _own(self, here: _Class, base: ast.expr) -> _Class | None:
        """Return a base as a class in the version: from the same file, else by its imports."""
        module = here.module
        if isinstance(base, ast.Name):
            parent = self._classes.get((module.path, base.id))
            # `class Dense(Dense)` inherits from the imported one.
            if parent is not None and parent.node is not here.node:
                return parent
        name = module.full_name(base)
        if not name or name.startswith((*KERAS, *TUNER)):
            return None
        if "." not in name:
            return self._by_name.get(name) if "*" in module.imported else None
        return self._imported(name, _folder(module))

    def _imported(self, name: str, folder: str) -> _Class | None:
        """Return a class by its full name, also if a module only imports it from another one."""
        for _ in range(MOST_IMPORTS):
            package, _, last = name.rpartition(".")
            module = self._module(package, folder)
            if module is None:
                return None
            if (defined := self._classes.get((module.path, last))) is not None:
                return defined
            if (name := module.imported.get(last, "")).startswith((*KERAS, *TUNER)):
                return None
            folder = _folder(module)
        return None

    def _module(self, package: str, folder: str) -> Module | None:
        """Return a module by its name, as it is imported in a folder."""
        # The folder around all files is not part of the version, and one such as `src` may be on the path.
        for name in (package, f"{folder}.{package}", package.partition(".")[2]):
            if name in self._modules:
                return self._modules[name]
        within = (dotted for dotted in self._modules if package and dotted.endswith(f".{package}"))
        return self._modules[first] if (first := next(within, None)) is not None else None

    def _kind(self, lineage: list[_Class]) -> EntryKind | None:
        for defined in lineage:
            for base in defined.node.bases:
                if self._own(defined, base) is None:
                    kind = _kind_of(defined.module.full_name(base))
                    if kind is not None:
                        return kind
        return None

    def _constructor(self, lineage: list[_Class]) -> list[CodeArgument]:
        for defined in lineage:
            for node in defined.node.body:
                if isinstance(node, ast.FunctionDef) and node.name == "__init__":
                    return arguments_of(defined.module, node)[1:]
        return []


def _application(module: Module, node: ast.stmt) -> str | None:
    """Return the name to which a statement assigns a HyperModel of KerasTuner, such as HyperResNet."""
    if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Call) or len(node.targets) != 1:
        return None
    is_application = module.full_name(node.value.func).startswith(TUNER_APPLICATIONS)
    target = node.targets[0]
    return printable(target.id) if is_application and isinstance(target, ast.Name) else None


def _folder(module: Module) -> str:
    return module.path.rpartition("/")[0].replace("/", ".")


def _kind_of(name: str) -> EntryKind | None:
    """Return the kind for a class that inherits from a Keras or KerasTuner class with this full name."""
    package, _, last = name.rpartition(".")
    if last == HYPERMODEL or package.startswith(TUNER_APPLICATIONS):
        return "hypermodel"
    home = next((prefix for prefix in KERAS if name.startswith(prefix)), None)
    if home is None:
        return None
    if last in KERAS_CLASSES:
        return KERAS_CLASSES[last]
    return KERAS_MODULES.get(name.removeprefix(home).removeprefix("src.").partition(".")[0])


def _methods(node: ast.ClassDef) -> set[str]:
    return {statement.name for statement in node.body if isinstance(statement, ast.FunctionDef)}
