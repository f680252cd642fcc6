"""The fields above lists that filter them. Templates need no `{% load %}`."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from django import template

register = template.Library()

type Options = Mapping[str, str] | Iterable[str]
"""Values with their words, or values that are words."""


class OptionGroup(NamedTuple):
    """Options under a heading; without a heading if it is empty."""

    heading: str
    options: list[tuple[str, str]]


@register.inclusion_tag("components/filter_text.html")
def filter_text(name: str, label: str, value: str, placeholder: str = "") -> dict[str, Any]:
    """Show a field for a text that filters a list."""
    return {"name": name, "label": label, "value": value, "placeholder": placeholder}


@register.inclusion_tag("components/filter_choice.html")
def filter_choice(
    name: str,
    label: str,
    chosen: object,
    options: Options = (),
    *,
    groups: Mapping[str, Options] | None = None,
    none: str = "any",
    submits: bool = False,
) -> dict[str, Any]:
    """Show the values that filter a list. A chosen value that is not among them is added.

    Args:
        name: the parameter of the address.
        label: what people read.
        chosen: the chosen value; empty for none.
        options: the values.
        groups: further values by the heading over them.
        none: the words for no choice.
        submits: whether a change filters at once.
    """
    shown = [OptionGroup("", _pairs(options))]
    shown += [OptionGroup(heading, _pairs(members)) for heading, members in (groups or {}).items()]
    value = str(chosen or "")
    if value and value not in {key for group in shown for key, _ in group.options}:
        shown[0].options.append((value, value))
    return {
        "name": name,
        "label": label,
        "chosen": value,
        "groups": shown,
        "none": none,
        "submits": submits,
    }


@register.inclusion_tag("components/filter_buttons.html")
def filter_buttons(everything: str, is_filtered: object) -> dict[str, Any]:
    """Show the button that filters a list, and a link to all of it if it is filtered."""
    return {"everything": everything, "is_filtered": bool(is_filtered)}


def _pairs(options: Options) -> list[tuple[str, str]]:
    if isinstance(options, Mapping):
        return [(str(value), str(words)) for value, words in options.items()]
    return [(str(value), str(value)) for value in options]
