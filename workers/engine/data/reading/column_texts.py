"""A column's texts, each one once if the table is large: rules for texts are applied once to each of them."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple, Self

import numpy as np

from jobs.spec.data.gap_words import LONGEST, is_gap
from jobs.spec.data.offers import Misfits, misfit_words
from workers.engine.arrays import Array
from workers.engine.data.spilled import head, words
from workers.engine.data.texts import is_text
from workers.engine.data.words import Words

FIRST_VALUES = 100
"""Values whose form decides whether the whole column is tried."""
SHOWN_MISFITS = 5
SHOWN_CHARACTERS = 40


class ColumnTexts(NamedTuple):
    """A text column.

    Attributes:
        values: its texts, "" for missing ones; each different one once if there are `codes`.
        codes: each row's position in `values`, (rows,); None if `values` has the rows themselves.
    """

    values: Array
    codes: Array | None = None

    @classmethod
    def of(cls, columns: Mapping[str, Array], name: str) -> Self | None:
        """Return a table's column; None if it has no texts."""
        if (distinct := words(columns, name)) is not None:
            return cls(distinct.values, distinct.codes)
        return cls(columns[name]) if is_text(head(columns, name, 1)) else None

    @property
    def rows(self) -> int:
        """Count the rows."""
        return len(self.values if self.codes is None else self.codes)

    @property
    def words(self) -> Words | None:
        """Return the texts as words; None if `values` has the rows."""
        return None if self.codes is None else Words(self.values, self.codes)

    def spread(self, values: Array) -> Array:
        """Return each row's entry in `values`, which has one for each text."""
        return values if self.codes is None else np.asarray(values[self.codes])

    def count(self, places: Iterable[int]) -> int:
        """Count the rows that have the texts at some places of `values`."""
        chosen = list(places)
        if self.codes is None:
            return len(chosen)
        return int(np.isin(self.codes, chosen).sum()) if chosen else 0

    def counted(self) -> Iterator[tuple[str, int]]:
        """Yield the texts that are not empty, with the number of their rows."""
        texts = self.values.tolist()
        rows = (
            [1] * len(texts) if self.codes is None else np.bincount(self.codes, minlength=len(texts)).tolist()
        )
        return ((text, count) for text, count in zip(texts, rows, strict=True) if text)

    def first(self, accepts: Callable[[str], bool] = bool) -> list[str]:
        """Return the values in the first rows that are accepted."""
        found: list[str] = []
        for start in range(0, self.rows, 10 * FIRST_VALUES):
            part = slice(start, start + 10 * FIRST_VALUES)
            texts = self.values[part] if self.codes is None else self.values[self.codes[part]]
            found.extend(text for text in texts.tolist() if accepts(text))
            if len(found) >= FIRST_VALUES:
                break
        return found[:FIRST_VALUES]

    def gap_words(self) -> dict[str, int]:
        """Return the words for missing values, as they are written, with the number of their rows."""
        return self._count(LONGEST, is_gap)

    def count_words(self, words: Iterable[str]) -> dict[str, int]:
        """Return some words, also with blanks around them, with the number of their rows."""
        chosen = {*words}
        return self._count(None, lambda text: text.strip() in chosen)

    def _count(self, longest: int | None, accepts: Callable[[str], bool]) -> dict[str, int]:
        """Return the accepted texts with the number of their rows; longer ones are not looked at."""
        places = np.arange(len(self.values))
        if longest is not None:
            places = np.flatnonzero(np.strings.str_len(self.values) <= longest)
        texts = self.values[places].tolist()
        found = [
            (int(place), text) for place, text in zip(places, texts, strict=True) if text and accepts(text)
        ]
        rows = None if self.codes is None else np.bincount(self.codes, minlength=len(self.values))
        counts: dict[str, int] = {}
        for place, text in found:
            counts[text] = counts.get(text, 0) + (1 if rows is None else int(rows[place]))
        return {text: count for text, count in counts.items() if count}

    @property
    def has_empty(self) -> bool:
        """Whether a row has no text."""
        places = np.flatnonzero(self.values == "").tolist()
        return self.count(places) > 0

    def without(self, gaps: Iterable[str]) -> Self:
        """Return the column with "" in place of some words, also with blanks around them."""
        chosen = {*gaps}
        texts = self.values.tolist() if chosen else []
        places = [place for place, text in enumerate(texts) if text.strip() in chosen]
        if not places:
            return self
        values = self.values.copy()
        values[places] = ""
        return self._replace(values=values)

    def misfits(self, places: list[int]) -> Misfits | None:
        """Return the rows with the texts at some places of `values`; None if there are none."""
        if not (count := self.count(places)):
            return None
        rows = places if self.codes is None else np.flatnonzero(np.isin(self.codes, places)).tolist()
        first = rows[:SHOWN_MISFITS]
        texts = [
            str(self.values[row] if self.codes is None else self.values[self.codes[row]]) for row in first
        ]
        words, refused = misfit_words(str(self.values[place]) for place in places)
        return Misfits(
            words=words,
            refused=refused,
            count=count,
            rows=tuple(row + 1 for row in first),
            examples=tuple(
                text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}…" for text in texts
            ),
        )
