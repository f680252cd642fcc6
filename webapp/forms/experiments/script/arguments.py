"""The rows for a script's arguments: each is left out, has a value, or is searched."""

import ast
import json
from collections.abc import Iterable, Mapping
from typing import Any

from django import forms
from django.forms.formsets import BaseFormSet

from jobs.messages.code import CodeArgument, CodeEntry
from jobs.spec.sections.script_model import MAX_ARGUMENTS, MAX_TEXT, name_refusal

OMIT, SET, VALUES, RANGE = "omit", "set", "values", "range"
USES = [(OMIT, "leave out"), (SET, "one value"), (VALUES, "search values"), (RANGE, "search a range")]
SCALES = [("linear", "linear"), ("log", "logarithmic")]
Json = dict[str, Any]


class ArgumentForm(forms.Form):
    """A script's argument. `value` or `parameter` is its place in the spec once it is valid."""

    name = forms.CharField(required=False, max_length=100, label="Argument")
    use = forms.ChoiceField(choices=USES, label="Use", initial=OMIT)
    text = forms.CharField(required=False, max_length=MAX_TEXT, label="Value")
    low = forms.CharField(required=False, max_length=40, label="From")
    high = forms.CharField(required=False, max_length=40, label="To")
    step = forms.CharField(required=False, max_length=40, label="Step")
    scale = forms.ChoiceField(choices=SCALES, required=False, label="Scale")
    type = forms.CharField(required=False, max_length=200, widget=forms.HiddenInput)

    value: Any = None
    parameter: Json | None = None

    def clean(self) -> Json:
        """Turn the entries into a value or a hyperparameter."""
        cleaned = super().clean() or self.cleaned_data
        name, use = cleaned.get("name", "").strip(), cleaned.get("use")
        if not name:
            if use != OMIT:
                self.add_error("name", "Enter the name of the argument.")
            return cleaned
        if (reason := name_refusal(name)) is not None:
            self.add_error("name", f"{reason}.")
        cleaned["name"] = name
        if use == SET:
            self.value = read_value(cleaned.get("text", ""), cleaned.get("type", ""))
        elif use == VALUES:
            self._read_values(name, cleaned)
        elif use == RANGE:
            self._read_range(name, cleaned)
        return cleaned

    def _read_values(self, name: str, entries: Json) -> None:
        texts = [text.strip() for text in entries.get("text", "").split(",")]
        if "" in texts or len(texts) < 2:
            self.add_error("text", "Enter two or more values, separated by commas.")
            return
        values = [read_value(text, entries.get("type", "")) for text in texts]
        self.parameter = {"name": name, "kind": "choice", "values": values}

    def _read_range(self, name: str, entries: Json) -> None:
        numbers: dict[str, float] = {}
        for field in ("low", "high", "step"):
            text = entries.get(field, "").strip()
            number = read_value(text, "") if text else None
            if isinstance(number, int | float) and not isinstance(number, bool):
                numbers[field] = number
            elif text or field != "step":
                self.add_error(field, "Enter a number.")
        if not numbers.keys() >= {"low", "high"}:
            return
        is_whole = entries.get("type") != "float" and all(
            isinstance(value, int) for value in numbers.values()
        )
        bounds = {"min": numbers["low"], "max": numbers["high"], "step": numbers.get("step")}
        if not is_whole:
            bounds = {key: None if value is None else float(value) for key, value in bounds.items()}
        self.parameter = {
            "name": name,
            "kind": "int" if is_whole else "float",
            **{key: value for key, value in bounds.items() if value is not None},
            "sampling": entries.get("scale") or "linear",
        }


class ArgumentRows(BaseFormSet):  # type: ignore[type-arg]
    """The rows for all arguments."""

    def clean(self) -> None:
        """Refuse a name that two rows have."""
        if any(self.errors):
            return
        names = [form.cleaned_data["name"] for form in self.forms if form.cleaned_data.get("name")]
        for form in self.forms:
            name = form.cleaned_data.get("name")
            if name and names.count(name) > 1:
                form.add_error("name", f"{name} is in two rows.")

    def arguments(self) -> Json:
        """Return the arguments with one value."""
        return {
            form.cleaned_data["name"]: form.value
            for form in self.forms
            if form.cleaned_data.get("name") and form.cleaned_data["use"] == SET
        }

    def space(self) -> list[Json]:
        """Return the search space."""
        return [form.parameter for form in self.forms if form.parameter is not None]


ArgumentFormSet: type[ArgumentRows] = forms.formset_factory(  # type: ignore[assignment]
    ArgumentForm, formset=ArgumentRows, extra=0, max_num=MAX_ARGUMENTS, absolute_max=MAX_ARGUMENTS
)


def read_value(text: str, kind: str) -> bool | int | float | str:
    """Return the value that a text means; one in quotation marks is always a text.

    Args:
        text: as it was entered.
        kind: the argument's type as its script declares it, such as `float`.
    """
    text = text.strip()
    if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'":
        return text[1:-1]
    if kind == "str":
        return text
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for number in (int, float):
        try:
            value: int | float = number(text)
        except ValueError:
            continue
        # Of the texts that Python reads as numbers, JSON has no nan and no infinity, and 1_000 is not meant.
        if "_" not in text and value - value == 0:
            return float(value) if kind == "float" else value
    return text


def shown_value(value: Any) -> str:
    """Return the text that `read_value` turns into a value."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value if read_value(value, "") == value else f'"{value}"'
    return repr(value)


def rows_of(entry: CodeEntry | None, args: Mapping[str, Any], space: Iterable[Any]) -> list[Json]:
    """Return the initial rows: the arguments that the code declares, and those in a spec.

    Args:
        entry: the findings about the script; None without any.
        args: the spec's arguments.
        space: its search space; in a draft, it may be anything.
    """
    rows: dict[str, Json] = {}
    for argument in entry.arguments if entry is not None else ():
        # An argument without dashes is given by its place, which a spec cannot do.
        if argument.name.startswith("--"):
            row = _declared(argument)
            rows[row["name"]] = row
    for name, value in args.items():
        rows[name] = {**rows.get(name, {"name": name}), "use": SET, "text": shown_value(value)}
    for parameter in space:
        named = parameter.get("name") if isinstance(parameter, dict) else None
        if isinstance(named, str):
            rows[named] = {**rows.get(named, {"name": named}), **_searched(parameter)}
    return list(rows.values())


def _declared(argument: CodeArgument) -> Json:
    row: Json = {"name": argument.name.removeprefix("--"), "use": OMIT, "type": argument.annotation or ""}
    default = _constant(argument.default)
    if argument.default is None:
        row["use"] = SET  # it is required
    elif isinstance(default, bool | int | float | str):
        row["text"] = shown_value(default)
    choices = _constant(argument.choices)
    if isinstance(choices, list | tuple) and choices:
        row["text"] = ", ".join(shown_value(choice) for choice in choices)
    return row


def _constant(source: str | None) -> Any:
    """Return a Python literal's value; None for any other text."""
    try:
        return None if source is None else ast.literal_eval(source)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None


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
    return {"use": VALUES, "text": ", ".join(shown_value(value) for value in values)}
