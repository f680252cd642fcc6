"""Requests are read by the rules that a column's data have decided: magnitudes, gaps, and words for true."""

from pathlib import Path

import numpy as np
import pytest

from jobs.spec.data.columns import ColumnRequest
from tests.engine.data.collection.case import TableCase
from tests.engine.data.collection.numbers import column_of
from tests.engine.data.collection.sentinels import boolean_table
from tests.engine.data.collection.test_requests import fitted, sent
from workers.features.values import BadValue


def test_a_request_multiplies_by_the_endings_of_the_data(tmp_path: Path) -> None:
    pipeline = fitted(tmp_path, column_of("sizes.csv", ["45k", "52000", "60k", "47000"])).pipeline
    x = pipeline.of_json({"x": ["45k", 45_000, "0.045 M", "45000"], "z": [1, 1, 1, 1]}, 4)
    assert (x == x[0]).all()
    assert x[0, 0] == 45_000


def test_a_request_with_a_point_between_thousands_is_read_as_the_data(tmp_path: Path) -> None:
    pipeline = fitted(tmp_path, column_of("sizes.csv", ["3.421", "658", "4.168"])).pipeline
    assert pipeline.of_json({"x": ["3.421"], "z": [1]}, 1)[0, 0] == 3421


def test_a_request_has_the_number_for_a_gap_as_a_gap(tmp_path: Path) -> None:
    case = column_of(
        "ages.csv",
        ["18", "999", "35", "50"],
        requests=(ColumnRequest(name="x", gap_words=("999",)),),
    )
    pipeline = fitted(tmp_path, case).pipeline
    x = pipeline.of_json({"x": [999, None, "999", 999.0], "z": [1, 1, 1, 1]}, 4)
    assert (x == x[0]).all()


def test_a_boolean_column_takes_the_words_of_its_data(tmp_path: Path) -> None:
    case = column_of(
        "answers.csv",
        ["Y", "Yes", "N", "No"],
        requests=(ColumnRequest(name="x", type="boolean"),),
    )
    pipeline = fitted(tmp_path, case).pipeline
    x = pipeline.of_json({"x": ["Y", True, 1, "yes "], "z": [1, 1, 1, 1]}, 4)
    assert (x == x[0]).all()
    no = pipeline.of_json({"x": ["n", False], "z": [1, 1]}, 2)
    np.testing.assert_array_equal(no[0], no[1])
    assert (no[0] != x[0]).any()
    with pytest.raises(BadValue, match="takes true or false"):
        pipeline.of_json({"x": ["maybe"], "z": [1]}, 1)


def test_a_boolean_of_parquet_with_gaps_takes_true_and_null(tmp_path: Path) -> None:
    case = TableCase("flags.parquet", boolean_table(), source="parquet")
    pipeline = fitted(tmp_path, case).pipeline
    x = sent(pipeline, {"instances": [{"x": True}, {"x": False}, {"x": None}]})
    assert len({tuple(row) for row in x.tolist()}) == 3
