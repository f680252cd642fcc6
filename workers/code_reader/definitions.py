"""Finds the functions, classes and scripts in a version that Trainyard can use."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from jobs.messages.code import MAX_TEXT, CodeArgument, CodeEntry, EntryKind
from workers.code_reader.modules import Module, constant, printable
from workers.code_reader.scripts import script_of

type Function = ast.FunctionDef | ast.AsyncFunctionDef

FUNCTIONS: dict[str, tuple[EntryKind, str]] = {
    "build_model": ("build_model", "hp"),
    "load_data": ("load_data", "split"),
    "preprocess": ("preprocess", "…"),
}
"""By the name of a function: its kind, and its one argument."""
MAY_HAVE_NONE = frozenset({"load_data"})
"""Functions that may have no argument: such a `load_data` returns all parts, as those of Keras do."""
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
REGISTER = "register_keras_serializable"
DEFAULT_PACKAGE = "Custom"
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
        for module in modules:
            for node in module.tree.body:
                if isinstance(node, ast.ClassDef):
                    defined = _Class(module, node)
                    self._classes.setdefault((module.path, node.name), defined)
                    self._by_name.setdefault(node.name, defined)

    def entries_of(self, module: Module) -> list[CodeEntry]:
        """Return one module's entries, ordered by their lines."""
        entries = list(self._in(module))
        if (script := script_of(module, self._files)) is not None:
            entries.append(script)
        return entries

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
    arguments = node.args
    positional = [*arguments.posonlyargs, *arguments.args]
    required = len(positional) - len(arguments.defaults)
    missing = [None for default in arguments.kw_defaults if default is None]
    if isinstance(node, ast.AsyncFunctionDef):
        return "It is async; an ordinary function is needed."
    has_none = not positional and arguments.vararg is None and node.name not in MAY_HAVE_NONE
    if has_none or required > 1 or missing:
        return f"It must be callable with one argument: {node.name}({argument})."
    return ""


def arguments_of(module: Module, node: Function) -> list[CodeArgument]:
    """Return a function's arguments, with defaults and annotations as they are written."""
    signature = node.args
    positional = [*signature.posonlyargs, *signature.args]
    defaults: list[ast.expr | None] = [None] * (len(positional) - len(signature.defaults))
    pairs = [
        *zip(positional, [*defaults, *signature.defaults], strict=True),
        *zip(signature.kwonlyargs, signature.kw_defaults, strict=True),
    ]
    arguments = [_argument(module, argument, default) for argument, default in pairs]
    for stars, more in (("*", signature.vararg), ("**", signature.kwarg)):
        if more is not None:
            arguments.append(_argument(module, more, None, stars))
    return arguments


def _argument(module: Module, node: ast.arg, default: ast.expr | None, stars: str = "") -> CodeArgument:
    return CodeArgument(
        name=f"{stars}{node.arg}"[:MAX_TEXT],
        default=module.source(default),
        annotation=module.source(node.annotation),
    )


def _registered(module: Module, node: Function | ast.ClassDef) -> str | None:
    """Return the name under which Keras saves an object that is decorated so."""
    for decorator in node.decorator_list:
        call = decorator if isinstance(decorator, ast.Call) else None
        name = module.full_name(call.func if call else decorator)
        if name.rpartition(".")[2] != REGISTER:
            continue
        keywords = {} if call is None else {keyword.arg: keyword.value for keyword in call.keywords}
        positional = [] if call is None else call.args
        package = constant(positional[0] if positional else keywords.get("package"))
        registered_name = constant(positional[1] if len(positional) > 1 else keywords.get("name"))
        home = package if isinstance(package, str) else DEFAULT_PACKAGE
        return printable(f"{home}>{registered_name if isinstance(registered_name, str) else node.name}")
    return None
