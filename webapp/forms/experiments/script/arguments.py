"""The rows for a script's arguments: each is left out, has a value, or is searched."""

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from django import forms
from django.forms.formsets import BaseFormSet

from jobs.messages.code import CodeArgument, CodeEntry
from jobs.messages.script_values import NUMBERS, choices_in, literal
from jobs.spec.sections.script_model import MAX_ARGUMENTS, MAX_TEXT, name_refusal
from webapp.forms.experiments.script.descriptions import describe_argument, describe_passing

OMIT, SET, VALUES, RANGE = "omit", "set", "values", "range"
USES = [(OMIT, "leave out"), (SET, "one value"), (VALUES, "search values"), (RANGE, "search a range")]
SHOWN_FIELDS = {SET: "text", VALUES: "values", RANGE: "low"}
"""The first field that each use shows."""
MAX_OPTIONS = 200
"""Choices that are offered in a list."""
SCALES = [("linear", "linear"), ("log", "logarithmic")]
Json = dict[str, Any]


class ArgumentForm(forms.Form):
    """A script's argument. `value` or `parameter` is its place in the spec once it is valid."""

    name = forms.CharField(required=False, max_length=100, label="Argument")
    use = forms.ChoiceField(choices=USES, label="Use", initial=OMIT)
    text = forms.CharField(required=False, max_length=MAX_TEXT, label="Value")
    values = forms.CharField(required=False, max_length=MAX_TEXT, label="Values")
    low = forms.CharField(required=False, max_length=40, label="From")
    high = forms.CharField(required=False, max_length=40, label="To")
    step = forms.CharField(required=False, max_length=40, label="Step")
    scale = forms.ChoiceField(choices=SCALES, required=False, label="Scale")
    type = forms.CharField(required=False, max_length=200, widget=forms.HiddenInput)
    several = forms.BooleanField(required=False, widget=forms.HiddenInput)

    value: Any = None
    parameter: Json | None = None
    lacks_value = False

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        if options := self.initial.get("options"):
            self.fields["text"].widget = forms.Select(choices=[("", "choose"), *options])

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
            self._read_value(cleaned)
        elif use == VALUES:
            self._read_values(name, cleaned)
        elif use == RANGE:
            self._read_range(name, cleaned)
        return cleaned

    def _read_value(self, entries: Json) -> None:
        text, kind = entries.get("text", ""), entries.get("type", "")
        if entries.get("several"):
            self.value = read_values(text, kind)
        else:
            # A draft may lack it.
            self.lacks_value = not text.strip() and (bool(self.initial.get("options")) or kind in NUMBERS)
            self.value = read_value(text, kind)

    def _read_values(self, name: str, entries: Json) -> None:
        text, several = entries.get("values", ""), entries.get("several")
        kind = entries.get("type", "")
        if several and kind not in NUMBERS:
            texts = _lists_of_texts(text)
        else:
            texts = (_read_lists(text) if several else None) or [part.strip() for part in text.split(",")]
        if "" in texts or len(texts) < 2:
            hint = ", and the parts of one list by blanks, such as 64 32, 128 64" if several else ""
            self.add_error("values", f"Enter two or more values, separated by commas{hint}.")
            return
        # A search chooses between single values; the texts 64 32 and ["a", "b"] become two arguments each.
        values = [read_value(text, "str" if several else kind) for text in texts]
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

    def have_values(self) -> bool:
        """Return whether no row lacks its value; if not, the others have errors."""
        missing = [form for form in self.forms if form.lacks_value]
        for form in missing:
            form.add_error("text", "Enter a value.")
        return not missing

    def row_of(self, name: str) -> ArgumentForm | None:
        """Return the row for an argument; None if no row has its name."""
        return next((form for form in self.forms if form["name"].value() == name), None)

    def error_lines(self) -> list[tuple[str, str, str]]:
        """Return (field id, label, error) for each error, with labels that name the argument."""
        if not self.is_bound:
            return []
        lines = []
        for number, form in enumerate(self.forms, 1):
            name = form["name"].value() or f"argument {number}"
            for bound in form:
                label = name if bound.name in ("text", "values") else f"{name}, {bound.label.lower()}"
                lines += [(bound.id_for_label, label, str(error)) for error in bound.errors]
            lines += [("", "", f"{name}: {error}") for error in form.non_field_errors()]
        return lines + [("", "", str(error)) for error in self.non_form_errors()]

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


def read_values(text: str, kind: str) -> list[Any]:
    """Return the values that a text means, separated by commas or spaces; a JSON list is read as such."""
    with suppress(ValueError):
        listed = json.loads(text)
        if isinstance(listed, list):
            return listed
    separator = "," if "," in text else None
    return [read_value(part, kind) for part in text.split(separator) if part.strip()]


def _read_lists(text: str) -> list[str] | None:
    """Return lists such as `[64, 32], [128]` as texts of a search; None for another text."""
    with suppress(ValueError):
        lists = json.loads(f"[{text}]")
        if all(isinstance(values, list) for values in lists):
            return [shown_parts(values) for values in lists]
    return None


def _lists_of_texts(text: str) -> list[str]:
    """Return lists of texts such as `a b, c`, or `["a b"], ["c"]`, each as a list of JSON."""
    with suppress(ValueError):
        lists = json.loads(f"[{text}]")
        if lists and all(isinstance(values, list) for values in lists):
            return [json.dumps(values) for values in lists]
    parts = [part.split() for part in text.split(",")]
    return [json.dumps(values) if values else "" for values in parts]


def shown_parts(values: Iterable[Any]) -> str:
    """Return a list as one of the values of a search."""
    return " ".join(map(str, values))


def shown_value(value: Any) -> str:
    """Return the text that `read_value` turns into a value."""
    if isinstance(value, list):
        return json.dumps(value)
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
