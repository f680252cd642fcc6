"""Builds an import's result: validated parts of a search spec, with errors that point into the text."""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from pydantic import TypeAdapter, ValidationError

from jobs.spec.base import Frozen
from jobs.spec.formats.reading import FormatError, Item, format_error
from jobs.spec.problems import Problem, message_of
from jobs.spec.sections.search import SearchSpec
from jobs.spec.space.hyperparameters import Parameter, Value
from jobs.spec.space.search_space import space_errors
from jobs.spec.space.summary import Line, summary

Format = Literal["keras_tuner", "vertex", "katib", "wandb", "optuna"]
MAX_HYPERPARAMETERS = 200
"""The most hyperparameters that a search can have."""

_PARAMETER: TypeAdapter[Parameter] = TypeAdapter(Parameter)


class Imported(Frozen):
    """An import's result.

    Attributes:
        format: the file's format.
        search: parts of a search spec: always `space`, and other fields that the file sets.
        summary: a description of each hyperparameter.
        notes: sentences about settings that were ignored or converted without changing the search.
    """

    format: Format
    search: dict[str, Any]
    summary: tuple[Line, ...]
    notes: tuple[str, ...] = ()


class ParsedParameter(NamedTuple):
    """A hyperparameter, with a JSON pointer to it in the text."""

    parameter: Parameter
    pointer: str


class Part(NamedTuple):
    """The value for another field in the search, with a JSON pointer to it in the text."""

    value: Any
    pointer: str


def parse_parameter(
    pointer: str, name: str, kind: str, *, when: Sequence[Any] = (), **fields: Any
) -> ParsedParameter:
    """Validate a hyperparameter.

    Args:
        pointer: a JSON pointer to the hyperparameter in the text, for error messages.
        name: its name.
        kind: its kind in a search space: `int`, `float`, `boolean`, `choice` or `fixed`.
        when: its conditions.
        fields: the fields that its kind has; None: not set.

    Raises:
        FormatError: a field is invalid.
    """
    row: dict[str, Any] = {"name": name, "kind": kind, **{k: v for k, v in fields.items() if v is not None}}
    if when:
        row["when"] = when[0] if len(when) == 1 else list(when)
    try:
        return ParsedParameter(_PARAMETER.validate_python(row), pointer)
    except ValidationError as error:
        raise FormatError(
            [Problem(pointer, _message(item)) for item in error.errors(include_url=False)]
        ) from None


def _message(item: Any) -> str:
    # The first part is the kind, which pydantic adds as the tag of the union.
    where = [str(part) for part in item["loc"][1:]]
    message = message_of(item)
    is_complete = not where or where == ["name"]
    return message if is_complete else f"{'.'.join(where)}: {message}"


def choice_values(item: Item) -> list[Value]:
    """Return a list's values, which must have one type; integers among floats become floats."""
    values = [entry.scalar() for entry in item.items()]
    kinds = {type(value) for value in values}
    if kinds == {int, float}:
        return [float(value) for value in values]
    if len(kinds) > 1:
        raise item.error(
            f"{values!r} mixes types; give only strings, only numbers, or only true and false"[:300]
        )
    return values


def build_import(
    name: Format, parameters: Sequence[ParsedParameter], notes: Sequence[str] = (), **parts: Part
) -> Imported:
    """Build an import's result and validate the search as a whole.

    Args:
        name: the format.
        parameters: the hyperparameters, in order.
        notes: as in `Imported`.
        parts: other fields in the search spec.

    Raises:
        FormatError: the search is invalid; lists every problem with its location.
    """
    if not parameters:
        raise format_error("", "no hyperparameters found")
    if len(parameters) > MAX_HYPERPARAMETERS:
        raise format_error(
            parameters[MAX_HYPERPARAMETERS].pointer,
            f"{len(parameters)} hyperparameters; a search can have at most {MAX_HYPERPARAMETERS}",
        )
    space = tuple(parsed.parameter for parsed in parameters)
    if errors := list(space_errors(space)):
        # A place begins with the hyperparameter's index.
        raise FormatError(
            [Problem(parameters[int(place.partition(".")[0])].pointer, message) for place, message in errors]
        )
    # Name and kind come first, for readers; the dump has them after the conditions.
    rows = [
        {"name": parameter.name, "kind": parameter.kind}
        | parameter.model_dump(mode="json", by_alias=True, exclude_defaults=True)
        for parameter in space
    ]
    search = {"space": rows} | {key: part.value for key, part in parts.items()}
    try:
        SearchSpec.model_validate(search)
    except ValidationError as error:
        problems = []
        for item in error.errors(include_url=False):
            # A rule over several fields has no location. Most of them depend on the algorithm.
            part = parts.get(str(item["loc"][0]) if item["loc"] else "algorithm")
            problems.append(Problem(part.pointer if part is not None else "", message_of(item)))
        raise FormatError(problems) from None
    return Imported(format=name, search=search, summary=summary(space), notes=tuple(notes))
