"""Builds the choices of a field from an enumeration of states."""

from enum import StrEnum


def choices(enum: type[StrEnum]) -> list[tuple[str, str]]:
    """Return each member's value as its stored value and its label."""
    return [(member.value, member.value) for member in enum]
