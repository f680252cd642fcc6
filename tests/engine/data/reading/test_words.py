"""Texts with few different values are typed and counted as row by row."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from jobs.spec.data.columns import ColumnRequest
from jobs.spec.data.dialect import Dialect
from workers.engine.data import words as words_module
from workers.engine.data.reading.typed_columns import read_column
from workers.engine.data.spilled import SpilledColumns
from workers.engine.data.table import Table
from workers.engine.data.texts import text_array
from workers.engine.data.words import words_of

COLUMNS = {
    "booleans": ["true", "False", "true"],
    "booleans with gaps": ["true", "", "false", ""],
    "numbers": ["1,234.5", "12 %", "", "12 %"],
    "dates": ["2026-01-05", "", "2026-02-01", "2026-01-05"],
    "german dates": ["05.01.2026", "06.01.2026"],
    "american months": ["01/01/2005", "02/01/2005", "03/01/2005", "04/01/2005"],
    "an impossible date": ["2026-01-05", "2026-02-30", "", "2026-02-01", "n/a"],
    "dates in two formats": ["2026-01-05", "12/24/2026", "2026-02-01"],
    "no date after all": ["2026-01-05", "x"],
    "categories": ["Paris", "Rome", "", "Rome"],
    "nothing": ["", ""],
    "nothing but words": ["NA", "None"],
    "categories with words": ["Paris", "NA", "Rome", "?"],
    "nearly numbers": ["1", "2", "3", "4", "len"],
    "dollars": ["$1,234.50", "(12.50)", "NA", "$3"],
    "points": ["1.234", "2.345"],
    "kilograms": ["68 kg", "70 kg", "7"],
    "texts": [f"a text of number {i} and some words" for i in range(300)],
    "long": ["x" * 600, "y"],
    "few long texts": ["one two three four five", "six seven eight nine"],
}


@pytest.mark.parametrize("texts", COLUMNS.values(), ids=COLUMNS)
def test_words_have_the_type_and_the_values_of_their_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, texts: Any
) -> None:
    rows = texts * 3
    words = words_of(pa.array(rows, pa.large_string()))
    assert words is not None
    column = text_array(rows)
    np.testing.assert_array_equal(words.rows(), column)
    np.testing.assert_array_equal(words.rows(np.array([1, 0])), column[[1, 0]])
    distinct = SpilledColumns(tmp_path)
    monkeypatch.setattr(distinct, "words", lambda _: words)
    request = ColumnRequest(name="column")
    table = Table({"column": column}, dialect=Dialect())
    by_row = read_column("column", table.columns, request, table, is_target=False)
    by_word = read_column("column", distinct, request, table, is_target=False)
    assert by_word._replace(values=None) == by_row._replace(values=None)
    if by_row.values is None or by_word.values is None:
        assert by_word.values is by_row.values
    else:
        assert by_word.values.dtype == by_row.values.dtype
        np.testing.assert_array_equal(by_word.values, by_row.values)


def test_words_are_numbered_over_parts_in_the_order_of_their_first_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(words_module, "PART_ROWS", 2)
    words = words_of(pa.array(["b", "a", "a", "c", "b"], pa.large_string()))
    assert words is not None
    assert words.codes.tolist() == [0, 1, 1, 2, 0]
    assert list(words.counts().items()) == [("b", 2), ("a", 2), ("c", 1)]


def test_too_many_different_texts_are_no_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(words_module, "MAX_WORDS", 3)
    monkeypatch.setattr(words_module, "PART_ROWS", 3)
    assert words_of(pa.array(list("aabbcc"), pa.large_string())) is not None
    assert words_of(pa.array(list("aabbcd"), pa.large_string())) is None
    assert words_of(pa.array(list("abcd"), pa.large_string())) is None
