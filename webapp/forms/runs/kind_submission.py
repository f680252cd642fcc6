"""Builds the form for a job kind from its input's JSON schema."""

from typing import Any

from django import forms
from django.forms.fields import InvalidJSONInput

from jobs.kinds.base import Facts
from jobs.kinds.inputs import input_model
from jobs.models import Project
from jobs.spec.json_depth import MAX_DEPTH, is_too_deep
from jobs.spec.problems import Problem

Schema = dict[str, Any]


class JsonField(forms.JSONField):
    """A JSON field that refuses text which is nested too deep to be checked."""

    def to_python(self, value: Any) -> Any:
        """Return the parsed value."""
        if isinstance(value, str) and is_too_deep(value.encode(errors="replace")):
            raise forms.ValidationError(f"This value is nested deeper than {MAX_DEPTH} levels.")
        return super().to_python(value)

    def bound_data(self, data: Any, initial: Any) -> Any:
        """Return the value to show; text that is nested too deep is shown as it came."""
        too_deep = isinstance(data, str) and is_too_deep(data.encode(errors="replace"))
        return InvalidJSONInput(data) if too_deep else super().bound_data(data, initial)


class KindForm(forms.Form):
    """The project, and one field for each input property."""

    project: "forms.ModelChoiceField[Project]" = forms.ModelChoiceField(
        queryset=None, to_field_name="slug", empty_label=None
    )

    def __init__(self, *args: Any, facts: Facts, projects: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["project"].queryset = projects  # type: ignore[attr-defined]
        schema = input_model(facts.payload).model_json_schema()
        required = schema.get("required", ())
        for name, about in schema.get("properties", {}).items():
            # An optional property is an `anyOf` of its value and null; the field is that of the value.
            values = [option for option in about.get("anyOf", ()) if option.get("type") != "null"]
            if len(values) == 1:
                about = {**about, **values[0]}
            self.fields[name] = _field(about, required=name in required)

    def payload(self) -> dict[str, Any]:
        """Return the input without empty fields."""
        filled = {name: value for name, value in self.cleaned_data.items() if name != "project"}
        return {name: value for name, value in filled.items() if value not in (None, "")}

    def add_problems(self, problems: tuple[Problem, ...], message: str) -> None:
        """Add each problem to its field; problems without a field, or else the message, to the form."""
        for problem in problems or (Problem("", message),):
            name = problem.pointer.removeprefix("/payload/").partition("/")[0]
            self.add_error(name if name in self.fields else None, problem.message)


def _field(about: Schema, *, required: bool) -> forms.Field:
    shared: dict[str, Any] = {
        "label": about.get("title", ""),
        "help_text": about.get("description", ""),
        "initial": about.get("default"),
        "required": required,
    }
    if "enum" in about:
        return forms.ChoiceField(choices=[(value, value) for value in about["enum"]], **shared)
    bounds: dict[str, Any] = {"min_value": about.get("minimum"), "max_value": about.get("maximum")}
    match about.get("type"):
        case "integer":
            return forms.IntegerField(**bounds, **shared)
        case "number":
            return forms.FloatField(**bounds, **shared)
        case "boolean":
            # A required BooleanField of Django accepts only True.
            return forms.BooleanField(**{**shared, "required": False})
        case "string":
            return forms.CharField(max_length=about.get("maxLength"), **shared)
        case _:
            return JsonField(**shared)
