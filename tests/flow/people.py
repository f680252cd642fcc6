"""Runs inside a yard."""

from webapp.demo.people import APPROVER, TRAINER, meet


def tokens() -> dict[str, str]:
    """Return the tokens of the two demo people, made if absent."""
    return {name: meet(name).token for name in (TRAINER, APPROVER)}
