"""Reads the columns of small, of large, and of wide text tables."""

import contextlib
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from jobs.spec.data.file_limits import FileLimits
from workers.engine.arrays import Array
from workers.engine.data.expansion import BYTES_PER_NUMBER, check_csv, check_expanded
from workers.engine.data.reading.arrow_columns import texts_of
from workers.engine.data.reading.bad_rows import BadRows
from workers.engine.data.reading.csv_columns.batches import CsvRows
from workers.engine.data.reading.csv_columns.conversion import convert, texts_part
from workers.engine.data.reading.csv_columns.facts import ColumnFacts, Part
from workers.engine.data.reading.csv_columns.growing import GrowingColumn
from workers.engine.data.reading.csv_columns.rules import longest
from workers.engine.data.spilled import MAX_OPEN_COLUMNS, Spill, SpilledColumns
from workers.engine.data.texts import check_lengths

type Facts = dict[str, ColumnFacts]


@dataclass(frozen=True)
class CsvTable:
    """A table that is read.

    Attributes:
        rows: its rows.
        names: the columns.
        limits: the size limits.
        texts: the columns whose numbers stay texts.
        bad: gets the rows that are left out.
    """

    rows: CsvRows
    names: Sequence[str]
    limits: FileLimits
    texts: Collection[str]
    bad: BadRows

    def read(self, spill: Spill | None) -> tuple[dict[str, Array] | SpilledColumns, Facts]:
        """Return the columns, and the facts about each.

        Args:
            spill: where a large table's columns are; None for memory.

        Raises:
            BadData: the table is too large, or a row that may not be left out has more or fewer fields.
            LongRow: a row is longer than a block.
            OtherEncoding: a text does not have the encoding of the first ones.
        """
        facts = {name: self._facts(name) for name in self.names}
        if spill is None:
            check_csv(self.rows.path, len(self.names), self.limits)
            columns: dict[str, Array] | SpilledColumns = {}
            self._from_texts(self.rows.whole(self.names, self.bad), columns, facts)
        elif len(self.names) > MAX_OPEN_COLUMNS:
            check_csv(self.rows.path, len(self.names), self.limits)
            columns = SpilledColumns(spill.folder)
            texts = self.rows.spilled(self.names, self.bad, spill.folder, self.limits)
            self._from_texts(texts, columns, facts)
        else:
            columns = self._in_parts(spill, facts)
        return columns, facts

    def _facts(self, name: str) -> ColumnFacts:
        return ColumnFacts(decimal_comma=self.rows.dialect.decimal == ",", has_text=name in self.texts)

    def _from_texts(self, texts: Any, columns: dict[str, Array] | SpilledColumns, facts: Facts) -> None:
        """Add the columns of an Arrow table with all texts, one after the other."""
        self.bad.check(texts.num_rows, self.rows.name)
        size = 0
        for name in self.names:
            columns[name] = column = self._whole_column(name, texts[name], facts[name])
            size += column.nbytes
            check_expanded(self.rows.name, size, self.limits)

    def _whole_column(self, name: str, fields: Any, facts: ColumnFacts) -> Array:
        part = convert(fields, facts)
        facts.add(part)
        if facts.kind in ("integer", "number"):
            return np.asarray(part.values)
        texts = part.values if part.kind in ("text", "empty") else texts_part(fields).values
        column = texts_of(texts)
        check_lengths(name, column, self.limits.text_characters)
        return column

    def _in_parts(self, spill: Spill, facts: Facts) -> SpilledColumns:
        """Return the columns of a large table, of which only some rows are in memory at a time."""
        columns = SpilledColumns(spill.folder)
        with contextlib.ExitStack() as on_error:
            growing = {name: GrowingColumn(columns, name) for name in self.names}
            on_error.callback(_abort, growing)
            rows = self._grow(growing, facts, self.bad, spill.threads)
            self.bad.check(rows, self.rows.name)
            if again := [name for name in self.names if not growing[name].is_of(facts[name])]:
                self._read_again(again, growing, facts, columns, spill.threads)
            on_error.pop_all()
        for name in self.names:
            growing[name].finish(facts[name].kind)
        return columns

    def _read_again(
        self,
        names: list[str],
        growing: dict[str, GrowingColumn],
        facts: Facts,
        columns: SpilledColumns,
        threads: int,
    ) -> None:
        """Read the columns again whose first values, as they were read, do not have the kind of all."""
        known = {name: self._facts(name) for name in names}
        for name in names:
            known[name].has_text = facts[name].kind == "text"
            # Numbers become float64 at once.
            known[name].is_whole = known[name].may_be_groups = False
        for name in names:
            growing[name].abort()
            growing[name] = GrowingColumn(columns, name)
        self._grow({name: growing[name] for name in names}, known, BadRows(self.bad.allowed), threads)

    def _grow(self, growing: dict[str, GrowingColumn], facts: Facts, bad: BadRows, threads: int) -> int:
        """Read rows into columns, and return their number."""
        rows = size = 0
        for parts in self._converted(growing, facts, bad, threads):
            for name, part in parts.items():
                facts[name].add(part)
                growing[name].append(part)
                size += max(part.rows * BYTES_PER_NUMBER, 0 if part.values is None else part.values.nbytes)
            check_expanded(self.rows.name, size, self.limits)
            rows += next(iter(parts.values())).rows
        return rows

    def _converted(
        self, growing: Mapping[str, GrowingColumn], facts: Facts, bad: BadRows, threads: int
    ) -> Iterator[dict[str, Part]]:
        """Yield the parts of all columns, for some rows after the other; few are in memory."""
        waiting: deque[Future[dict[str, Part]]] = deque()
        first = 0
        with ThreadPoolExecutor(threads) as pool:
            try:
                for texts in self.rows.parts([*growing], bad):
                    waiting.append(pool.submit(self._parts, texts, growing, facts, first))
                    # Most facts follow from the first rows.
                    if not first or len(waiting) > threads:
                        yield waiting.popleft().result()
                    first += texts.num_rows
                while waiting:
                    yield waiting.popleft().result()
            finally:
                for future in waiting:
                    future.cancel()

    def _parts(
        self, texts: Any, growing: Mapping[str, GrowingColumn], facts: Facts, first: int
    ) -> dict[str, Part]:
        """Return the parts of some rows, of which `first` rows are above."""
        return {
            name: Part("text", None, texts.num_rows)
            if column.is_lost and facts[name].is_text
            else self._part(name, texts[name], facts[name], first)
            for name, column in growing.items()
        }

    def _part(self, name: str, fields: Any, facts: ColumnFacts, first: int) -> Part:
        part = convert(fields, facts)
        # A text has at most as many characters as bytes.
        if part.kind == "text" and longest(part.values) > self.limits.text_characters:
            check_lengths(name, texts_of(part.values), self.limits.text_characters, first)
        return part


def _abort(growing: Mapping[str, GrowingColumn]) -> None:
    for column in growing.values():
        column.abort()
