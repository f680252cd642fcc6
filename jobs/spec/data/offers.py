"""Declares offers: changes of how a column was read that a person accepts with one click."""

from collections.abc import Iterable

from pydantic import Field

from jobs.spec.base import Frozen
from jobs.spec.data.columns import ColumnRequest

MOST_WORDS = 20
LONGEST_WORD = 100
"""More words, or longer ones, are values of another kind, and no words for a missing value."""


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
    words: tuple[str, ...] = Field(
        default=(),
        exclude_if=lambda words: not words,
        description="The different texts without digits, which are missing values in requests too; none if "
        "there are more than 20.",
    )
    refused: str = Field(
        default="",
        exclude_if=lambda text: not text,
        description="The first text that is refused in requests; empty if none is.",
    )

    @property
    def named(self) -> str:
        """Return the first rows with their texts, for people."""
        places = [f"row {row} has {text!r}" for row, text in zip(self.rows, self.examples, strict=False)]
        return ", ".join(places) + (" …" if self.count > len(places) else "")

    @property
    def effect(self) -> str:
        """Return a sentence on the values that requests cannot have; empty if there are none."""
        return f"Requests with values such as {self.refused!r} are refused." if self.refused else ""


def misfit_words(texts: Iterable[str]) -> tuple[tuple[str, ...], str]:
    """Return the words among the misfits of a column that mean a missing value, and the first that does not.

    A text with digits, such as 90+, has a value that the column cannot take, so it is refused.
    """
    words: dict[str, None] = {}
    refused = ""
    for text in texts:
        word = text.strip()
        if len(word) > LONGEST_WORD or any(map(str.isdigit, word)):
            refused = refused or word[:LONGEST_WORD]
            continue
        words[word] = None
        if len(words) > MOST_WORDS:
            return (), next(iter(words))
    return tuple(words), refused
