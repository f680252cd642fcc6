"""Lists every spec field by its JSON pointer, with type, bounds and default.

Fields in list items are at `/*`, in a tagged union at `/*:kind`, such as `/search/space/*:int/min`.
The arguments that an object's kinds take are listed together, such as `/fit/schedule/alpha`; `VARIANTS` maps
each kind to its arguments.
"""

import types
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from jobs.spec.algorithms import ALGORITHMS
from jobs.spec.base import Frozen
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.exports import QUANTIZATIONS
from jobs.spec.sections.evaluation import Holdout, KFold
from jobs.spec.sections.optimizers import ARGUMENTS
from jobs.spec.sections.pruning import PRUNERS
from jobs.spec.sections.schedules import KINDS
from jobs.spec.sections.version_model import VERSION
from jobs.spec.templates import TEMPLATES


class Variant(NamedTuple):
    """The pointer to an arguments object, and each kind's arguments."""

    arguments: str
    kinds: Mapping[Any, type[BaseModel]]


VARIANTS: dict[str, Variant] = {
    "/model/template": Variant(
        "/model/args", {info.name: info.arguments for info in (*TEMPLATES.values(), VERSION)}
    ),
    "/fit/optimizer": Variant("/fit/optimizer_args", ARGUMENTS),
    "/fit/schedule/kind": Variant("/fit/schedule", KINDS),
    "/search/algorithm": Variant(
        "/search/options", {name: info.options or Frozen for name, info in ALGORITHMS.items()}
    ),
    "/after/quantize/mode": Variant(
        "/after/quantize/options", {name: entry.options or Frozen for name, entry in QUANTIZATIONS.items()}
    ),
    "/search/evaluation/kind": Variant("/search/evaluation", {"holdout": Holdout, "k_fold": KFold}),
    "/search/pruner/kind": Variant("/search/pruner", PRUNERS),
}
"""By the pointer of the field that selects the kind."""


class Leaf(NamedTuple):
    """One spec field that holds a value."""

    pointer: str
    kind: str
    default: Any
    required: bool
    minimum: float | None = None
    maximum: float | None = None
    options: tuple[str, ...] = ()


@cache
def spec_leaves() -> dict[str, Leaf]:
    """Return every spec leaf by pointer. An argument that several kinds take is described by the first.

    A choice has the values from all kinds; see `options_of`.
    """
    leaves: dict[str, Leaf] = {}
    for leaf in _leaves_of_model(ExperimentSpec, ""):
        leaves.setdefault(leaf.pointer, leaf)
    for variant in VARIANTS.values():
        leaves.pop(variant.arguments, None)
        for kind in variant.kinds.values():
            for leaf in _leaves_of_model(kind, variant.arguments):
                first = leaves.setdefault(leaf.pointer, leaf)
                options = tuple(dict.fromkeys(first.options + leaf.options))
                leaves[leaf.pointer] = first._replace(options=options)
    return leaves


def options_of(kind: type[BaseModel]) -> dict[str, tuple[str, ...]]:
    """Return the choices' values among a kind's arguments."""
    return {leaf.pointer[1:]: leaf.options for leaf in _leaves_of_model(kind, "") if leaf.kind == "select"}


def _leaves_of_model(model: type[BaseModel], prefix: str) -> Iterator[Leaf]:
    for name, field in model.model_fields.items():
        yield from _leaves_of_field(field, f"{prefix}/{field.alias or name}")


def _leaves_of_field(field: FieldInfo, pointer: str) -> Iterator[Leaf]:
    members = _members(field.annotation)
    if len(members) == 1 and _is_model(members[0]):
        yield from _leaves_of_model(members[0], pointer)
    elif len(members) > 1 and all(_is_model(member) for member in members):
        yield _leaf_of_tag(field, members, f"{pointer}/kind")
        for member in members:
            yield from _leaves_of_model(member, pointer)
    elif len(members) == 1 and (rows := _row_models(members[0])):
        for tag, model in rows.items():
            yield from _leaves_of_model(model, f"{pointer}/*{tag}")
    else:
        yield _leaf(field, members, pointer)


def _leaf_of_tag(field: FieldInfo, members: list[Any], pointer: str) -> Leaf:
    """Return the leaf for an object's kind; `VARIANTS` lists each kind's arguments."""
    tags = tuple(get_args(member.model_fields["kind"].annotation)[0] for member in members)
    return Leaf(pointer, "select", getattr(field.default, "kind", None), field.default is None, options=tags)


def _members(annotation: Any) -> list[Any]:
    """Return a field's types, without null and annotations."""
    if get_origin(annotation) is Annotated:
        return _members(get_args(annotation)[0])
    if get_origin(annotation) in (Union, types.UnionType):
        parts = [part for part in get_args(annotation) if part is not type(None)]
        return [member for part in parts for member in _members(part)]
    return [annotation]


def _is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def _row_models(annotation: Any) -> dict[str, type[BaseModel]]:
    """Return the models of a list's items by tag, such as `:int`; the tag is empty if there is one model."""
    if get_origin(annotation) is not tuple:
        return {}
    models = [model for model in _members(get_args(annotation)[0]) if _is_model(model)]
    if len(models) == 1:
        return {"": models[0]}
    return {f":{get_args(model.model_fields['kind'].annotation)[0]}": model for model in models}


def _leaf(field: FieldInfo, members: list[Any], pointer: str) -> Leaf:
    required = field.is_required()
    # Pydantic demands `validated_data` for a factory that computes its default from other fields.
    default = None if required else field.get_default(call_default_factory=True, validated_data={})
    low = high = None
    for rule in field.metadata:
        low = getattr(rule, "ge", getattr(rule, "gt", low))
        high = getattr(rule, "le", getattr(rule, "lt", high))
    options: list[str] = []
    for member in members:
        inner = get_args(member)[0] if get_origin(member) is tuple else member
        options += get_args(inner) if get_origin(inner) is Literal else ()
    return Leaf(
        pointer,
        _kind(members[0]),
        None if default is PydanticUndefined else default,
        required,
        low,
        high,
        tuple(options),
    )


def _kind(annotation: Any) -> str:
    origin = get_origin(annotation)
    if origin is Literal:
        return "select"
    if origin is tuple:
        return "set" if get_origin(get_args(annotation)[0]) is Literal else "list"
    return {bool: "switch", int: "int", float: "float", str: "text"}.get(annotation, "json")
