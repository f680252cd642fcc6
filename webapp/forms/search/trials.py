"""The form that queues one configuration by hand; also parses lists with trial numbers."""

from collections.abc import Iterable

from django import forms
from django.http import QueryDict

from jobs.errors import BadInput
from jobs.spec.problems import Problem
from jobs.spec.space.search_space import FloatParameter, IntParameter, Parameter, Space, Value
from webapp.forms.reading import ReadForm


class TrialForm(ReadForm):
    """A field for each hyperparameter; `values` holds the configuration once it is valid."""

    pointer_prefix = "/values"

    def __init__(self, space: Space, data: QueryDict | None = None) -> None:
        super().__init__(data, prefix="value")
        self.space = space
        self.values: dict[str, Value] = {}
        for parameter in space:
            self.fields[parameter.name] = _field_of(parameter)

    def clean(self) -> None:
        """Parse the values in the space's order, because parents decide whether a child is active."""
        for parameter in self.space:
            text = self.cleaned_data.get(parameter.name)
            if text is None or not parameter.is_active(self.values):
                continue
            try:
                self.values[parameter.name] = read_value(parameter, text)
            except ValueError as error:
                self.add_error(parameter.name, str(error))


def read_numbers(texts: Iterable[str]) -> list[int]:
    """Return the trial numbers of form values such as `7` or `1,5,9`.

    Raises:
        BadInput: a word is not a trial number.
    """
    words = [word.strip() for text in texts for word in text.split(",") if word.strip()]
    for word in words:
        # int() would accept more, such as signs and other scripts; a longer number overflows the database.
        if not (word.isascii() and word.isdecimal() and len(word) < 10):
            message = f"{word[:40]!r} is not a trial number"
            raise BadInput(message, [Problem("/trials", message)])
    return [int(word) for word in words]


def read_value(parameter: Parameter, text: str) -> Value:
    """Parse a hyperparameter's input into its type.

    Raises:
        ValueError: the hyperparameter cannot have this value; the message names the allowed values.
    """
    if isinstance(parameter, IntParameter | FloatParameter):
        return _read_number(parameter, text)
    for value in parameter.grid():
        if str(value) == text:
            return value
    allowed = ", ".join(str(value) for value in parameter.grid())
    raise ValueError(f"{text!r} is not a value of this hyperparameter. Choose one of {allowed}.")


def _read_number(parameter: IntParameter | FloatParameter, text: str) -> int | float:
    whole = isinstance(parameter, IntParameter)
    noun = "whole number" if whole else "number"
    span = f"from {parameter.min} to {parameter.max}"
    if not text:
        raise ValueError(f"Enter a {noun} {span}.")
    try:
        value = int(text) if whole else float(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a {noun}. Enter one {span}.") from None
    # Not `value < min or value > max`: both are false for nan.
    if not parameter.min <= value <= parameter.max:
        raise ValueError(f"{text} is out of range. Enter a {noun} {span}.")
    return value


def _field_of(parameter: Parameter) -> forms.Field:
    """Return a field that accepts any text: `TrialForm.clean` ignores inactive hyperparameters."""
    if isinstance(parameter, IntParameter | FloatParameter):
        hints = {"inputmode": "decimal", "placeholder": f"{parameter.min} to {parameter.max}"}
        return forms.CharField(label=parameter.name, required=False, widget=forms.TextInput(attrs=hints))
    choices = [(str(value), str(value)) for value in parameter.grid()]
    return forms.CharField(label=parameter.name, required=False, widget=forms.Select(choices=choices))
