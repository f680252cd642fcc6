"""Column statistics: numbers sorted once, and row hashes."""

from typing import Any

import numpy as np
import pytest

from workers.engine.data.row_hashes import RowHashes, bits_of
from workers.engine.data.statistics import count_distinct, describe_column, preview, standard_deviation
from workers.engine.data.table import Table
from workers.engine.data.texts import text_array

NAN, INF = np.nan, np.inf


def test_the_preview_of_an_array_has_null_in_place_of_nan() -> None:
    table = Table({"x": np.array([[1.0, NAN], [2.0, INF]]), "y": np.array([0, 1])})
    assert preview(table) == ({"x": [1.0, None], "y": 0}, {"x": [2.0, None], "y": 1})


@pytest.mark.parametrize(
    ("values", "missing", "distinct"),
    [
        ([1.0, 2.0, 2.0, -0.0, 0.0], 0, 3),
        ([NAN, 1.0, NAN, INF, -INF, INF], 5, 4),
        ([NAN, NAN], 2, 1),
        ([INF], 1, 1),
        (np.array([2**53, 2**53 + 1, 2**53 + 1]), 0, 2),
        (np.array([-(2**53) - 1, -(2**53)]), 0, 2),
        (np.array([2**64 - 1, 2**64 - 2], np.uint64), 0, 2),
        (np.array([True, False, True]), 0, 2),
        (np.array([0.1, 0.2, NAN], np.float32), 1, 3),
    ],
)
def test_gaps_and_different_numbers_are_counted(values: Any, missing: int, distinct: int) -> None:
    description = describe_column("a", np.asarray(values))
    assert (description.missing, description.distinct) == (missing, distinct)
    finite = np.asarray(values).astype(np.float64)
    finite = finite[np.isfinite(finite)]
    assert description.min == (finite.min() if len(finite) else None)
    assert sum(description.histogram) == len(finite)


def test_values_of_several_rows_are_counted() -> None:
    values = np.sort(np.random.default_rng(0).integers(0, 40, 200))
    rows = np.unique(values, return_counts=True)[1]
    for least in range(1, 12):
        assert count_distinct(values, least) == np.count_nonzero(rows >= least)
    assert count_distinct(values[:0]) == 0
    assert count_distinct(values[:3], 4) == 0


@pytest.mark.parametrize("rows", [1, 7, 1000, 65_536, 65_537, 262_145, 300_001])
def test_the_standard_deviation_is_that_of_numpy_to_the_bit(rows: int) -> None:
    values = np.random.default_rng(rows).normal(scale=1e4, size=rows)
    assert standard_deviation(values) == values.std()


def test_hashes_of_rows_ignore_columns_once_all_rows_differ() -> None:
    rows = RowHashes(3)
    rows.add(bits_of(np.array([1, 1, 2])))
    assert not rows.all_differ and rows.count_repeated() == 1
    other = rows.copy()
    third = rows.copy()
    third.add(bits_of(text_array(["a", "b", "a"])))
    assert third.all_differ and third.count_repeated() == 0
    other.add(bits_of(text_array(["a", "a", "a"])))
    assert other.count_repeated() == 1
