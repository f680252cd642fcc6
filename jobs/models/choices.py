"""Builds the choices of a field from an enumeration of states."""

from enum import StrEnum


def choices(enum: type[StrEnum]) -> list[tuple[str, str]]:
    """Return the choices of an enumeration; each value is its own label."""
    return [(member.value, member.value) for member in enum]
