"""What an import gives: parts of a search spec, each checked by our own rules and blamed on its place."""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from pydantic import TypeAdapter, ValidationError

from jobs.contracts.base import Frozen
from jobs.contracts.formats.reading import Item, Refused, refusal
from jobs.contracts.hyperparameters import Parameter, Value
from jobs.contracts.problems import Problem, message_of
from jobs.contracts.search import SearchSpec
from jobs.contracts.search_space import faults
from jobs.contracts.summary import Line, summary

Format = Literal["keras_tuner", "vertex", "katib", "wandb", "optuna"]
MOST = 200
"""As many hyperparameters as a search takes."""

_PARAMETER: TypeAdapter[Parameter] = TypeAdapter(Parameter)


class Imported(Frozen):
    """What was read.

    Attributes:
        format: whose file it is.
        search: the parts of a search spec that it holds; always `space`, others where the file says so.
        summary: its hyperparameters in words.
        notes: sentences on what was left out or written differently without changing the search.
    """

    format: Format
    search: dict[str, Any]
    summary: tuple[Line, ...]
    notes: tuple[str, ...] = ()


class Made(NamedTuple):
    """A hyperparameter, and where it stands in the text."""

    parameter: Parameter
    pointer: str


class Part(NamedTuple):
    """A further part of the search, and where it stands in the text."""

    value: Any
    pointer: str


def made(pointer: str, name: str, kind: str, *, when: Sequence[Any] = (), **fields: Any) -> Made:
    """Return a hyperparameter; fields that are None are left out.

    Raises:
        Refused: our own rules do not allow it.
    """
    row: dict[str, Any] = {"name": name, "kind": kind, **{k: v for k, v in fields.items() if v is not None}}
    if when:
        row["when"] = when[0] if len(when) == 1 else list(when)
    try:
        return Made(_PARAMETER.validate_python(row), pointer)
    except ValidationError as error:
        raise Refused([Problem(pointer, _told(item)) for item in error.errors(include_url=False)]) from None


def _told(item: Any) -> str:
    if item["type"] == "string_pattern_mismatch":
        return f"{item['input']!r} is no name here: letters, digits and _ . / -, beginning with a letter or _"
    where = [str(part) for part in item["loc"][1:]]  # the first is the kind
    message = message_of(item)
    return f"{'.'.join(where)}: {message}" if where else message


def listed(item: Item) -> list[Value]:
    """Return the values of a list, all of one kind; whole numbers among others are read as numbers."""
    values = [entry.scalar() for entry in item.items()]
    kinds = {type(value) for value in values}
    if kinds == {int, float}:
        return [float(value) for value in values]
    if len(kinds) > 1:
        raise item.refuse(f"{values!r} mixes kinds; a list here holds texts, numbers or true/false"[:300])
    return values


def imported(name: Format, parameters: Sequence[Made], notes: Sequence[str] = (), **parts: Part) -> Imported:
    """Put a search together.

    Raises:
        Refused: the parts do not hold together; each problem at its place.
    """
    if not parameters:
        raise refusal("", "there is no hyperparameter in it")
    if len(parameters) > MOST:
        raise refusal(parameters[MOST].pointer, f"a search takes at most {MOST} hyperparameters")
    space = tuple(one.parameter for one in parameters)
    found = [Problem(parameters[int(place.split(".")[0])].pointer, told) for place, told in faults(space)]
    if found:
        raise Refused(found)
    rows = [_plain(parameter) for parameter in space]
    given = {key: part.value for key, part in parts.items()}
    try:
        SearchSpec.model_validate({**given, "space": rows})
    except ValidationError as error:
        places = {key: part.pointer for key, part in parts.items()}
        raise Refused([_placed(item, places) for item in error.errors(include_url=False)]) from None
    search = {"space": rows, **given}
    return Imported(format=name, search=search, summary=summary(space), notes=tuple(notes))


def _plain(parameter: Parameter) -> dict[str, Any]:
    row = parameter.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    return {"name": parameter.name, "kind": parameter.kind, **row}


def _placed(item: Any, places: dict[str, str]) -> Problem:
    key = str(item["loc"][0]) if item["loc"] else "algorithm"
    message = message_of(item)
    return Problem(places.get(key, ""), message)
