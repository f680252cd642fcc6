"""Few modules use a library's private parts, and such a library has an upper bound.

A private part is a name with a leading underscore that none of our modules defines, or a module that its
library does not document. A release may change it without notice.
"""

import ast
import re
import tomllib
from collections.abc import Iterator

import pytest
from packaging.requirements import Requirement

from tests.architecture.sources import ROOT, modules

PRIVATE_PARTS: dict[str, tuple[str, ...]] = {
    "django": ("jobs.actions.storage.purge", "jobs.prepared", "jobs.session_store", "webapp.health"),
    "jax": ("workers.engine.compiled.cache", "workers.confinement.forking.server"),
    "keras": ("workers.engine.models.keras_private", "workers.confinement.forking.interpreter"),
    "keras-tuner": (
        "workers.engine.models.code_models.code_questions",
        "workers.engine.models.code_models.code_space",
        "workers.engine.models.templates.hypermodels",
        "workers.engine.search.keras_tuner_bayesian",
        "workers.engine.search.keras_tuner_regressor",
    ),
    "s3fs": ("jobs.sources.s3",),
    "scikit-learn": ("workers.engine.models.trees.growing",),
    "uvicorn": ("transport.http", "transport.websocket", "workers.serving.direct_http"),
}
"""The modules that may use private parts of each library.

One module is best. The modules of `workers.confinement.forking` may not import the libraries whose loaded
modules they read, and those of `keras-tuner` and `uvicorn` derive classes of their own.
"""

DOCUMENTED = {"_replace", "_asdict", "_fields", "_meta", "_exit", "_default_manager", "_base_manager", "_db"}
"""Names with an underscore that their libraries document."""
ON_REQUESTS = {"_caller", "_idempotent", "_upload_reservation"}
"""Attributes that we add to Django's requests."""
PRIVATE_MODULES = re.compile(
    r"(^|\.)_[a-z]|^(keras|keras_tuner)\.src\b|^keras_tuner\.engine\b|^uvicorn\.protocols\b"
)


def is_private(name: object) -> bool:
    is_name = isinstance(name, str) and name.startswith("_") and not name.endswith("__")
    return is_name and name not in DOCUMENTED | ON_REQUESTS


def defined(tree: ast.Module) -> Iterator[str]:
    """Yield the names that a module gives to functions, classes, attributes and variables."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Attribute(attr=name, ctx=ast.Store(), value=ast.Name(id="self" | "cls")):
                yield name
            case ast.Name(id=name, ctx=ast.Store()):
                yield name
            case ast.Call(func=ast.Name(id="setattr"), args=[_, ast.Constant(value=str(name)), *_]):
                yield name


def used_parts(tree: ast.Module, everywhere: set[str]) -> Iterator[str]:
    """Yield the private names and modules of libraries that a module uses."""
    here = set(defined(tree))
    for node in ast.walk(tree):
        yield from (path for path in imported(node) if PRIVATE_MODULES.search(path))
        name, is_own = accessed(node)
        # Our class may be derived from one of ours in another module.
        if is_private(name) and name not in (everywhere if is_own else here):
            yield name


def imported(node: ast.AST) -> Iterator[str]:
    """Yield the modules that a statement imports or an expression finds in `sys.modules`."""
    match node:
        case ast.Import(names=names):
            yield from (alias.name for alias in names)
        case ast.ImportFrom(module=str(module), names=names):
            yield module
            yield from (f"{module}.{alias.name}" for alias in names)
        case ast.Subscript(value=ast.Attribute(attr="modules"), slice=ast.Constant(value=str(name))):
            yield name
        case ast.Call(
            func=ast.Attribute(attr="get", value=ast.Attribute(attr="modules")),
            args=[ast.Constant(value=str(name))],
        ):
            yield name


def accessed(node: ast.AST) -> tuple[str, bool]:
    """Return the attribute that an expression accesses, and whether it is one of `self` or the class."""
    match node:
        case ast.Attribute(attr=name, value=ast.Name(id="self" | "cls")):
            return name, True
        case (
            ast.Attribute(attr=name)
            | ast.Call(func=ast.Name(id="getattr" | "hasattr"), args=[_, ast.Constant(value=str(name)), *_])
            | ast.Subscript(value=ast.Call(func=ast.Name(id="vars")), slice=ast.Constant(value=str(name)))
        ):
            return name, False
    return "", False


@pytest.fixture(scope="module")
def used() -> dict[str, list[str]]:
    """The private parts that each module uses."""
    everywhere = {name for tree in modules().values() for name in defined(tree)}
    parts = {name: sorted(set(used_parts(tree, everywhere))) for name, tree in modules().items()}
    return {name: names for name, names in parts.items() if names}


def test_private_parts_of_libraries_are_used_in_the_listed_modules_alone(used: dict[str, list[str]]) -> None:
    listed = {module for names in PRIVATE_PARTS.values() for module in names}
    others = {name: parts for name, parts in used.items() if name not in listed}
    assert others == {}, "use the public interface, or the module that PRIVATE_PARTS lists for the library"


def test_every_listed_module_uses_private_parts(used: dict[str, list[str]]) -> None:
    unused = [name for names in PRIVATE_PARTS.values() for name in names if name not in used]
    assert not unused, "remove these from PRIVATE_PARTS"


def test_libraries_with_used_private_parts_have_an_upper_bound() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = [line for lines in project["optional-dependencies"].values() for line in lines]
    for requirement in map(Requirement, [*project["dependencies"], *extras]):
        if requirement.name in PRIVATE_PARTS:
            operators = {specifier.operator for specifier in requirement.specifier}
            assert operators == {">=", "<"}, f"{requirement}: give the first version that was not tried, as <"


@pytest.mark.parametrize(
    ("source", "parts"),
    [
        ("import jax._src.core", {"jax._src.core"}),
        ("from uvicorn._types import Scope", {"uvicorn._types", "uvicorn._types.Scope"}),
        ("from keras.src import ops", {"keras.src", "keras.src.ops"}),
        ("model._layers", {"_layers"}),
        ("getattr(model, '_layers', None)", {"_layers"}),
        ("vars(model)['_layers']", {"_layers"}),
        ("sys.modules['jax._src.core']", {"jax._src.core"}),
        ("sys.modules.get('keras.src.backend')", {"keras.src.backend"}),
        ("class A(Base):\n    def f(self):\n        return self._inherited", {"_inherited"}),
        (
            "class A:\n    def f(self, other):\n        self._a = other._a\n        return self._elsewhere",
            set(),
        ),
        ("row._replace(a=1), Model._meta, row.__dict__", set()),
    ],
)
def test_a_private_part_is_found(source: str, parts: set[str]) -> None:
    assert set(used_parts(ast.parse(source), everywhere={"_elsewhere", "_a"})) == parts
