"""Declares the answers about the rules of a model's gates."""

from pydantic import Field

from jobs.answers.base import Answer, Time
from jobs.spec.gates import GateRules


class GatesOut(Answer):
    """One revision of the rules of a model's gates. Its number is the `ETag`."""

    model: str
    revision: int = Field(description="Counted from 1; 0 are the defaults, which no one has changed yet.")
    rules: GateRules
    comment: str = Field(description="Why they were changed.")
    differences: list[str] = Field(description="From the revision before, one sentence for each rule.")
    changed_by: str | None
    changed: Time | None
