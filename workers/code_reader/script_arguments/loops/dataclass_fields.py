"""Reads the fields of the data classes of a version: their names, types and defaults."""

import ast
from collections.abc import Iterable
from dataclasses import dataclass

from workers.code_reader.modules import Module, constant
from workers.code_reader.script_arguments.parser_names import method_of

DECORATORS = ("dataclasses.dataclass", "dataclass", "pydantic.dataclasses.dataclass")
TUPLES = ("typing.NamedTuple",)
NO_BASES = ("object", "typing.NamedTuple", "abc.ABC")
NOT_FIELDS = ("ClassVar", "InitVar", "KW_ONLY")
EMPTY = {"list": ast.List([], ast.Load()), "dict": ast.Dict([], []), "tuple": ast.Tuple([], ast.Load())}
MOST_BASES = 10


@dataclass(frozen=True)
class ClassField:
    """A field of a data class.

    Attributes:
        name: of the field.
        type: as it is written.
        default: the value without another one; None if it is required, or made by code.
        is_required: whether it has no default.
        metadata: the texts in its dict of metadata, and its help.
    """

    name: str
    type: ast.expr
    default: ast.expr | None
    is_required: bool
    metadata: dict[str, ast.expr]


class DataClasses:
    """The data classes of a version, by the names under which a module has them."""

    def __init__(self, module: Module, modules: Iterable[Module]) -> None:
        self._module = module
        self._modules = [module, *(other for other in modules if other is not module)]

    def fields_of(self, node: ast.expr) -> list[ClassField] | None:
        """Return the fields of the class that an expression names; None if it is no known data class."""
        found = self._find(node, self._module)
        return None if found is None else self._fields(*found, 0)

    def _find(self, node: ast.expr, module: Module) -> tuple[ast.ClassDef, Module] | None:
        last = module.full_name(node).rpartition(".")[2]
        for each in (module, *self._modules):
            for part in each.tree.body:
                if isinstance(part, ast.ClassDef) and part.name == last:
                    return part, each
        return None

    def _fields(self, node: ast.ClassDef, module: Module, steps: int) -> list[ClassField] | None:
        decorators = [d.func if isinstance(d, ast.Call) else d for d in node.decorator_list]
        bases = [base for base in node.bases if module.full_name(base) not in NO_BASES]
        is_tuple = any(module.full_name(base) in TUPLES for base in node.bases)
        if not is_tuple and not any(module.full_name(each) in DECORATORS for each in decorators):
            return None
        fields: dict[str, ClassField] = {}
        for base in reversed(bases):
            found = self._find(base, module)
            inherited = self._fields(*found, steps + 1) if found and steps < MOST_BASES else None
            if inherited is None:
                return None
            fields |= {each.name: each for each in inherited}
        for part in node.body:
            if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
                kind = part.annotation
                named = kind.value if isinstance(kind, ast.Subscript) else kind
                if module.full_name(named).rpartition(".")[2] not in NOT_FIELDS:
                    fields[part.target.id] = _field(module, part.target.id, part)
        return list(fields.values())


def _field(module: Module, name: str, node: ast.AnnAssign) -> ClassField:
    value = node.value
    is_text = any(full == "__future__.annotations" for full in module.imported.values())
    kind: ast.expr = ast.Constant(ast.unparse(node.annotation)) if is_text else node.annotation
    if not isinstance(value, ast.Call) or method_of(value) not in ("field", "Field", "HfArg"):
        return ClassField(name, kind, value, value is None, {})
    given = {each.arg: each.value for each in value.keywords if each.arg is not None}
    metadata: dict[str, ast.expr] = {}
    if isinstance(described := given.get("metadata"), ast.Dict):
        metadata = {
            key: item
            for key, item in zip(map(constant, described.keys), described.values, strict=True)
            if isinstance(key, str)
        }
    if "help" in given:
        metadata["help"] = given["help"]
    factory = given.get("default_factory")
    default = given.get("default")
    if isinstance(factory, ast.Lambda):
        default = factory.body
    elif isinstance(factory, ast.Name):
        default = EMPTY.get(factory.id)
    return ClassField(name, kind, default, default is None and factory is None, metadata)
