"""Filters that show values: numbers, sizes, durations, mappings and JSON. Templates need no `{% load %}`."""

import datetime as dt
import json
import re
from collections.abc import ItemsView, Iterable, Mapping
from typing import Any

from django import template
from django.utils.html import format_html_join
from django.utils.safestring import SafeString, mark_safe

from jobs.errors import TrainyardError
from jobs.kinds import titles_by_public_name
from jobs.queries.registry.gates import gate_title
from jobs.spec.labels import labels_text as of_labels
from jobs.spec.name_lists import write_names
from webapp.templatetags import audit_words, problem_labels, words

register = template.Library()
WORD_PARTS = re.compile(r"[^_:/]*[_:/]|[^_:/]+")
DIGEST = re.compile(r"\b[0-9a-f]{64}\b")


def _none_if_empty[T](value: T) -> T | None:
    """Return None for an empty text, which Django passes to a filter if a variable is undefined."""
    return None if value == "" else value


@register.filter
def byte_size(count: float | None) -> str:
    """Show a number of bytes, such as `1.4 MB`."""
    return words.byte_size(_none_if_empty(count))


@register.filter
def code_words(code: str) -> str:
    """Show a code that programs read as words.

    >>> code_words("trials_keep_failing")
    'trials keep failing'
    """
    return code.replace("_", " ")


@register.filter
def breakable(name: str) -> SafeString:
    """Show a name of code that may break into lines after its underscores, colons and slashes."""
    return format_html_join(
        "",
        "{}{}",
        ((part, mark_safe("<wbr>") if part[-1] in "_:/" else "") for part in WORD_PARTS.findall(name)),
    )


@register.filter
def action_words(action: str) -> str:
    """Show an action of the audit log in words."""
    return audit_words.action_words(action)


@register.filter
def kind_title(public_name: str) -> str:
    """Show a kind of jobs by its title."""
    return titles_by_public_name()[public_name]


@register.filter
def axes(names: Iterable[str | None]) -> str:
    """Show the mesh axis of each dimension of a variable, such as `–, model`; `whole` without any."""
    listed = [name or words.NONE for name in names]
    return ", ".join(listed) if any(name != words.NONE for name in listed) else "whole"


@register.filter
def shown_message(text: str) -> str:
    """Show a message that REST has too."""
    return words.shown_message(str(text))


@register.filter
def labels_text(labels: Mapping[str, str]) -> str:
    """Show labels of workers, such as `gpu=h200, site=berlin`."""
    return of_labels(labels)


@register.filter
def plain_message(text: str) -> str:
    """Show a problem's message, with the labels of fields."""
    return text if isinstance(text, SafeString) else problem_labels.plain_message(str(text))


@register.filter
def message_of(error: TrainyardError) -> str:
    """Show a refusal's message, with the labels of fields."""
    return problem_labels.message_of(error)


@register.filter
def sentence(text: str) -> str:
    """Show a message that another sentence follows."""
    return words.sentence(str(text))


@register.filter
def duration(seconds: float | dt.timedelta | None) -> str:
    """Show a duration, such as `2 min 5 s`."""
    # No line break before the unit.
    return words.duration(_none_if_empty(seconds)).replace(" ", "\u00a0")


@register.filter
def number(value: float | None, digits: int = 4) -> str:
    """Show a number with `digits` significant digits; None is a dash."""
    return words.number(_none_if_empty(value), digits)


@register.filter
def gate_name(name: str) -> str:
    """Return the name of a gate in words."""
    return gate_title(name)


@register.filter
def signed(value: float | None, digits: int = 4) -> str:
    """Show a difference with `digits` significant digits and its sign; None is a dash."""
    text = words.number(_none_if_empty(value), digits)
    return f"+{text}" if value and value > 0 else text


@register.filter
def plain(value: Any, missing: str = "–") -> str:
    """Show a hyperparameter's value: floats with four significant digits, other values unchanged."""
    if value is None:
        return missing
    return f"{value:.4g}" if isinstance(value, float) else str(value)


@register.filter
def counted(value: int | None) -> str:
    """Show a count with thin spaces between thousands."""
    return "–" if _none_if_empty(value) is None else f"{value:,}".replace(",", "\u202f")


@register.filter
def get(mapping: Mapping[str, Any] | None, key: str) -> Any:
    """Return a mapping's value by a variable key."""
    return (mapping or {}).get(key)


@register.filter
def pairs(mapping: Mapping[Any, Any] | None) -> ItemsView[Any, Any]:
    """Return a mapping's keys and values. In a template, `.items` would be the value under that key."""
    return (mapping or {}).items()


@register.filter
def as_names(names: str | Iterable[str]) -> str:
    """Show a name, or several, as `read_names` reads them."""
    return write_names([names] if isinstance(names, str) else names)


@register.filter
def as_json(value: Any) -> str:
    """Show a value as JSON, for an attribute that a script reads."""
    return json.dumps(value, ensure_ascii=False)


@register.filter
def percent(share: float | None) -> str:
    """Show a share between 0 and 1 as a percentage."""
    number = _none_if_empty(share)
    return words.NONE if number is None else f"{100 * number:.0f} %"


@register.filter
def phase_words(phase: str) -> str:
    """Show a task's phase in words; empty for one that people need not know."""
    return words.PHASES.get(phase, "")


@register.filter
def in_words(value: Any) -> str:
    """Show a JSON value in words: items separated by commas, yes and no, none for null, digests shortened."""
    if isinstance(value, dict):
        value = [f"{name} {in_words(item)}" for name, item in value.items()]
    if value is None or value == []:
        return "none"
    if isinstance(value, list):
        return ", ".join(in_words(item) for item in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return DIGEST.sub(lambda match: f"{match[0][:12]}…", str(value))
