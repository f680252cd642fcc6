"""Declares offers: changes of how a column was read that a person accepts with one click."""

from pydantic import Field

from jobs.spec.base import Frozen
from jobs.spec.data.columns import ColumnRequest


class Offer(Frozen):
    """A change of a column's role, type or format, and the finding for which it is offered."""

    finding: str = Field(description="A sentence: how the column was read, and what could be wrong with it.")
    label: str = Field(description="What accepting does, as the text of a button.")
    change: ColumnRequest


class Misfits(Frozen):
    """Values that do not have their column's type. They count as missing."""

    count: int
    rows: tuple[int, ...] = Field(default=(), description="The first of their rows; the first row is 1.")
    examples: tuple[str, ...] = Field(default=(), description="The texts in these rows.")

    @property
    def named(self) -> str:
        """Return the first rows with their texts, for people."""
        places = [f"row {row} has {text!r}" for row, text in zip(self.rows, self.examples, strict=False)]
        return ", ".join(places) + (" …" if self.count > len(places) else "")
