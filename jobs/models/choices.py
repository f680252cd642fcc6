"""Builds a field's choices from an enumeration of states."""

from enum import StrEnum


def choices(enum: type[StrEnum]) -> list[tuple[str, str]]:
    """Return an enumeration's choices; each value is its own label."""
    return [(member.value, member.value) for member in enum]
