"""Typed template variables."""

from dataclasses import dataclass, fields
from typing import Any


@dataclass(frozen=True)
class Context:
    """A template's variables. Each page declares its own, as the fields of a frozen dataclass."""


def template_variables(*contexts: Context) -> dict[str, Any]:
    """Return the fields of all contexts.

    Raises:
        ValueError: two contexts have a field with the same name.
    """
    variables: dict[str, Any] = {}
    for context in contexts:
        for field in fields(context):
            if field.name in variables:
                raise ValueError(f"{type(context).__name__}.{field.name} is also in another context")
            variables[field.name] = getattr(context, field.name)
    return variables
