"""The initial rows of the form: the arguments that a script declares, and those that a spec has."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from jobs.messages.code import CodeArgument, CodeEntry
from jobs.messages.script_values import choices_in, literal
from webapp.forms.experiments.script.arguments import OMIT, RANGE, SET, VALUES, Json
from webapp.forms.experiments.script.descriptions import describe_argument, describe_passing
from webapp.forms.experiments.script.values import shown_parts, shown_value

MAX_OPTIONS = 200
"""Choices that are offered in a list."""


def rows_of(entry: CodeEntry | None, args: Mapping[str, Any], space: Iterable[Any]) -> list[Json]:
    """Return the initial rows: the arguments that the code declares, and those in a spec.

    Args:
        entry: the findings about the script; None without any.
        args: the spec's arguments.
        space: its search space; in a draft, it may be anything.
    """
    rows: dict[str, Json] = {}
    for argument in entry.arguments if entry is not None else ():
        row = _declared(argument)
        if (other := rows.setdefault(row["name"], row)) is not row:
            _join_options(other, row)
    for given, value in args.items():
        name = _row_name(given, rows)
        rows[name] = _with_value(rows.get(name, {"name": name}), shown_value(value))
    for parameter in space:
        named = parameter.get("name") if isinstance(parameter, dict) else None
        if isinstance(named, str):
            name = _row_name(named, rows)
            rows[name] = {**rows.get(name, {"name": name}), **_searched(parameter)}
    return list(rows.values())


def _join_options(row: Json, other: Json) -> None:
    """Offer the choices of two arguments with one name, which belong to different commands."""
    if "options" in row and "options" in other:
        row["options"] = list(dict.fromkeys([*row["options"], *other["options"]]))
    else:
        row.pop("options", None)


def _with_value(row: Json, text: str) -> Json:
    """Return a row with one value. Of a draft, it may be another than the declared ones."""
    options = row.get("options", [])
    if options and text not in dict(options):
        row = {**row, "options": [*options, (text, text)]}
    return {**row, "use": SET, "text": text}


def _row_name(name: str, rows: Mapping[str, Json]) -> str:
    """Return the name of the row for an argument: `learning-rate` and `learning_rate` are the same."""
    if name in rows:
        return name
    return next((row for row in rows if row.replace("-", "_") == name.replace("-", "_")), name)


def _declared(argument: CodeArgument) -> Json:
    choices = _choices_of(argument)
    row: Json = {
        "name": _shown_name(argument),
        "use": OMIT,
        "type": argument.annotation or "",
        "several": argument.takes_several,
        "how": describe_passing(argument),
        "about": describe_argument(argument),
    }
    default = literal(argument.default)
    if argument.default is None:
        row["use"] = SET  # it is required
    elif isinstance(default, bool | int | float | str | list):
        row["text"] = shown_value(default)
        row["values"] = shown_parts(default) if isinstance(default, list) else row["text"]
    if choices:
        row["values"] = ", ".join(shown_value(choice) for choice in choices)
        if not argument.takes_several:
            row["options"] = [(shown_value(choice), str(choice)) for choice in choices]
    return row


def _choices_of(argument: CodeArgument) -> list[Any]:
    """Return the values that an argument can have; empty if there is no list of them."""
    choices = choices_in(argument.choices)
    if 0 < len(choices) <= MAX_OPTIONS:
        return list(choices)
    if argument.action in ("true", "false", "boolean"):
        return [True, False]
    return []


def _shown_name(argument: CodeArgument) -> str:
    """Return an argument's name in the form: for `--no-cache`, which sets `cache`, it is `cache`."""
    if argument.action == "false" and argument.dest is not None:
        return argument.dest
    return argument.name.lstrip("-")


def _searched(parameter: Json) -> Json:
    kind, values = parameter.get("kind"), parameter.get("values")
    if kind in ("int", "float"):
        low, high, step = (parameter.get(name) for name in ("min", "max", "step"))
        return {
            "use": RANGE,
            "low": "" if low is None else json.dumps(low),
            "high": "" if high is None else json.dumps(high),
            "step": "" if step is None else json.dumps(step),
            "scale": parameter.get("sampling", "linear"),
            "type": kind,
        }
    if kind == "boolean":
        values = [True, False]
    elif not isinstance(values, list):
        values = []
    return {"use": VALUES, "values": ", ".join(shown_value(value) for value in values)}
