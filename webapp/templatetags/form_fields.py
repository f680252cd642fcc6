"""Tags that show the fields and the problems of forms. Templates need no `{% load %}`."""

from typing import Any

from django import template
from django.forms import BoundField
from django.forms.utils import flatatt
from django.urls import reverse
from django.utils.html import format_html

from jobs.spec.problems import Problem
from webapp.templatetags.problem_labels import label_of, plain_message

register = template.Library()


@register.inclusion_tag("components/problems.html")
def problems(source: Any) -> dict[str, Any]:
    """List an input's problems, each with a link to its field.

    Accepts a Django form, or a list of `jobs.spec.problems.Problem`. A form with several fields of one
    label has a method `error_lines` that distinguishes them.
    """
    if hasattr(source, "error_lines"):
        return {"items": source.error_lines()}
    if hasattr(source, "errors"):
        fields = [(f.id_for_label or f.auto_id, f.label, e) for f in source for e in f.errors]
        return {"items": fields + [("", "", error) for error in source.non_field_errors()]}
    # A problem of the whole input, such as a missing role, has no field.
    items = [
        (item.pointer and f"at{item.pointer}", item.pointer and label_of(item.pointer), _with_job(item))
        for item in source or ()
    ]
    return {"items": items}


def _with_job(item: Problem) -> str:
    if item.job is None:
        return item.message
    place = reverse("job", args=[item.job])
    return format_html('{} (<a href="{}">job {}</a>)', plain_message(item.message), place, item.job)


@register.inclusion_tag("components/field.html")
def field(bound: BoundField, *, hint: str = "", wide: bool = False) -> dict[str, Any]:
    """Show a form field with its label, help and errors, linked for screen readers.

    A select with one choice is shown as text, beside a hidden input that posts the choice.
    """
    base = getattr(bound.field.widget, "input_type", "")
    kind = "form-check-input" if base in ("checkbox", "radio") else "form-control"
    kind = "form-select" if base == "select" else kind
    invalid = " is-invalid" if bound.errors else ""
    described = f"{bound.id_for_label}-hint" if hint or bound.help_text or bound.errors else None
    attributes = {"class": f"{kind}{invalid}", "aria-describedby": described}
    if bound.errors:
        attributes["aria-invalid"] = "true"
    widget = bound.as_widget(attrs={key: value for key, value in attributes.items() if value})
    return {
        "bound": bound,
        "widget": widget,
        "hint": hint or bound.help_text,
        "check": base == "checkbox",
        "wide": wide,
        "only": _only_choice(bound) if base == "select" else None,
    }


@register.inclusion_tag("components/check_list.html")
def check_list(bound: BoundField) -> dict[str, Any]:
    """Show the choices of a form field as boxes, or as buttons of which one is chosen."""
    return {"bound": bound}


def _only_choice(bound: BoundField) -> tuple[str, str] | None:
    """Return the value and label of a select's choice if it has exactly one."""
    widget = bound.field.widget
    choices = [] if widget.allow_multiple_selected else list(widget.choices)
    if len(choices) != 1 or isinstance(choices[0][1], list | tuple):
        return None
    value, label = choices[0]
    return str(value), str(label)


@register.inclusion_tag("components/text_input.html")
def text_input(
    name: str,
    label: str,
    value: str | None = "",
    *,
    hint: str = "",
    error: str = "",
    wide: bool = False,
    **attributes: Any,
) -> dict[str, Any]:
    """Show a text input without a Django form; with the attribute `rows` it has several lines.

    Its id is the pointer to which `problems` links; `attributes` are further attributes of the input.
    """
    place = f"at/{name}"
    if hint:
        attributes["aria-describedby"] = f"{place}-hint"
    return {
        "id": place,
        "name": name,
        "label": label,
        "value": value or "",
        "is_area": "rows" in attributes,
        "attributes": flatatt(attributes),
        "hint": hint,
        "error": error,
        "wide": wide,
    }
