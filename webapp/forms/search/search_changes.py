"""The form that changes a running search's budget and narrows its space."""

from typing import Any

from django import forms
from django.http import QueryDict

from jobs.actions.search.search_changes import BUDGET
from jobs.errors import TrainyardError
from jobs.models import Job
from jobs.queries.search import outcomes
from jobs.spec.space.hyperparameters import describe_values
from jobs.spec.space.search_space import (
    FixedParameter,
    FloatParameter,
    IntParameter,
    Parameter,
)
from webapp.forms.reading import ReadForm


class ReviseForm(ReadForm):
    """Shows the present values; `changes` holds the valid values that differ from them."""

    revision = forms.IntegerField(widget=forms.HiddenInput)
    max_trials = forms.IntegerField(label=BUDGET["max_trials"], min_value=1)
    max_minutes = forms.FloatField(
        label=BUDGET["max_minutes"],
        min_value=0.1,
        max_value=100_000,
        required=False,
        help_text="Since the start of the search. Empty: no limit.",
    )
    parallel_trials = forms.IntegerField(
        label=BUDGET["parallel_trials"], min_value=1, required=False, help_text="Empty: all free slots."
    )
    max_consecutive_failures = forms.IntegerField(label=BUDGET["max_consecutive_failures"], min_value=1)
    comment = forms.CharField(label="Reason", required=False, max_length=1000)

    def __init__(self, job: Job, data: QueryDict | None = None) -> None:
        self.search = outcomes.search_of(job)
        current = {name: getattr(self.search, name) for name in BUDGET}
        current["revision"] = job.revision.number if job.revision is not None else 0
        super().__init__(data, prefix="revise", initial=current)
        self.changes: dict[str, Any] = {}
        self._named: list[str] = []
        for parameter in self.search.space:
            self.fields.update(_fields_of(parameter))

    def budget(self) -> list[forms.BoundField]:
        """Return the budget's fields."""
        return [self[name] for name in BUDGET]

    def hyperparameters(self) -> list[tuple[str, str, list[forms.BoundField]]]:
        """Return (name, its values in words, fields) for each hyperparameter that still varies."""
        return [
            (parameter.name, describe_values(parameter), [self[name] for name in fields])
            for parameter in self.search.space
            if (fields := _fields_of(parameter))
        ]

    def clean(self) -> None:
        """Collect the valid values that differ from the present ones."""
        for name in BUDGET:
            if name in self.cleaned_data and self.cleaned_data[name] != getattr(self.search, name):
                self.changes[name] = self.cleaned_data[name]
        space = []
        for parameter in self.search.space:
            if any(name in self.errors for name in _fields_of(parameter)):
                # One valid end of a range is not a change without the other.
                continue
            if len(change := self._change_of(parameter)) > 1:
                space.append(change)
                self._named.append(parameter.name)
        if space:
            self.changes["space"] = space

    def _change_of(self, parameter: Parameter) -> dict[str, Any]:
        change: dict[str, Any] = {"name": parameter.name}
        if isinstance(parameter, IntParameter | FloatParameter):
            for end in ("min", "max"):
                value = self.cleaned_data.get(f"{parameter.name}:{end}")
                if value is not None and value != getattr(parameter, end):
                    change[end] = value
            return change
        selected = self.cleaned_data.get(f"{parameter.name}:values")
        values = [value for value in parameter.grid() if selected and str(value) in selected]
        if values and len(values) < len(parameter.grid()):
            # A boolean has no list of values: narrowed to one of them it is fixed.
            one = parameter.kind == "boolean"
            change |= {"kind": "fixed", "value": values[0]} if one else {"values": values}
        return change

    def add_problems(self, error: TrainyardError) -> None:
        """Add the action's problems to the form, each at its field."""
        for problem in getattr(error, "problems", ()):
            parts = problem.pointer.strip("/").split("/")[1:]
            name, message = parts[0] if parts else "", problem.message
            if name == "space" and len(parts) > 1:
                # Its index counts the changed hyperparameters, in the order in which `clean` collected them.
                parameter = self._named[int(parts[1])]
                name = f"{parameter}:{parts[2] if len(parts) > 2 else ''}"
                message = message if name in self.fields else f"{parameter}: {message}"
            self.add_error(name if name in self.fields else None, message)
        if not self.errors:
            self.add_error(None, error.message)

    def error_lines(self) -> list[tuple[str, str, str]]:
        """Return (field id, label, error) for each error, with labels that name the hyperparameter."""
        lines = []
        for bound in self:
            parameter, _, part = bound.name.partition(":")
            label = f"{parameter}, {bound.label.lower()}" if part else str(bound.label)
            lines += [(bound.id_for_label, label, str(text)) for text in bound.errors]
        return lines + [("", "", str(text)) for text in self.non_field_errors()]


def _fields_of(parameter: Parameter) -> dict[str, forms.Field]:
    """Return a hyperparameter's fields; none for one that cannot vary."""
    if isinstance(parameter, FixedParameter):
        return {}
    if isinstance(parameter, IntParameter | FloatParameter):
        make = forms.IntegerField if isinstance(parameter, IntParameter) else forms.FloatField
        text = forms.TextInput(attrs={"inputmode": "decimal"})
        return {
            f"{parameter.name}:{end}": make(label=label, initial=getattr(parameter, end), widget=text)
            for end, label in (("min", "From"), ("max", "To"))
        }
    choices = [(str(value), str(value)) for value in parameter.grid()]
    several = forms.MultipleChoiceField(
        label="Values",
        choices=choices,
        initial=[value for value, _ in choices],
        widget=forms.CheckboxSelectMultiple,
    )
    return {f"{parameter.name}:values": several}
