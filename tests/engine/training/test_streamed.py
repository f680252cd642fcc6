"""Rows that are read from their version's file while a model trains."""

import dataclasses
import itertools
import math
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jobs.messages.task import DatasetFile
from tests.engine.data.test_tables import customers
from tests.engine.helpers import csv_file, profiled, spec_of
from tests.present import present
from workers.engine.data.batches import WINDOW_PARTS, Batches
from workers.engine.data.dataset import Dataset, UploadedColumns, load_dataset
from workers.engine.data.mapped_columns import MappedColumns
from workers.engine.data.prefetch import Waiting, prefetched
from workers.engine.data.rows import SCANNED_BYTES, StreamedRows, selected
from workers.engine.data.store import read_arrays
from workers.engine.errors import BadData, BadSpec

BATCH_ROWS = 16
STREAMED = 0
"""The size up to which rows are in memory."""


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> DatasetFile:
    """A version with numbers, gaps, categories, dates, truth values and texts, in 19 batches."""
    folder = tmp_path_factory.mktemp("streamed")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("workers.engine.data.reading.arrow_file.BATCH_ROWS", BATCH_ROWS)
        return profiled(folder, source="csv", path=csv_file(folder, customers()))


def loaded(table: DatasetFile, in_memory_bytes: int | None) -> Dataset:
    return load_dataset(table, present(spec_of("t").data), in_memory_bytes=in_memory_bytes)


def test_rows_of_a_mapped_file_are_those_of_the_file_in_any_order(table: DatasetFile) -> None:
    columns, arrays = MappedColumns(Path(table.path)), read_arrays(Path(table.path))
    names = [str(name) for name in arrays["columns"]]
    rows = np.random.default_rng(0).permutation(columns.rows)[:100]
    taken = columns.take(names, rows)
    assert list(columns) == names
    assert {array.dtype.kind for array in taken.values()} >= {"f", "T", "M"}
    for place, name in enumerate(names):
        np.testing.assert_array_equal(taken[name], arrays[f"column_{place}"][rows])
        np.testing.assert_array_equal(columns[name][:], arrays[f"column_{place}"])
        np.testing.assert_array_equal(columns[name][3:40], arrays[f"column_{place}"][3:40])
        assert columns[name].shape == arrays[f"column_{place}"].shape
    np.testing.assert_array_equal(columns.array("y"), arrays["y"])


def test_reading_rows_of_many_batches_looks_at_each_row_a_bounded_number_of_times(
    monkeypatch: pytest.MonkeyPatch, table: DatasetFile
) -> None:
    columns = MappedColumns(Path(table.path))
    rows, seen = np.arange(columns.rows), []
    find = np.flatnonzero

    def counted(values: np.ndarray) -> np.ndarray:
        seen.append(len(values))
        return find(values)

    monkeypatch.setattr("workers.engine.data.mapped_columns.np.flatnonzero", counted)
    cities = columns.take(["city"], rows)["city"]
    monkeypatch.undo()
    assert sum(seen) <= len(rows)
    np.testing.assert_array_equal(cities, columns["city"][:])
    assert len(columns.take(["city"], rows[:0])["city"]) == 0


def test_a_file_that_is_none_of_a_version_is_refused(tmp_path: Path, table: DatasetFile) -> None:
    broken = tmp_path / "broken.arrow"
    broken.write_bytes(Path(table.path).read_bytes()[:-100])
    with pytest.raises(BadData, match=r"broken\.arrow is not a readable data set file"):
        MappedColumns(broken)


def test_streamed_rows_are_bit_for_bit_those_in_memory(table: DatasetFile) -> None:
    there, here = loaded(table, None), loaded(table, STREAMED)
    assert isinstance(here.x, StreamedRows)
    assert isinstance(there.x, np.ndarray)
    assert here.features == there.features
    assert here.x[:].tobytes() == there.x.tobytes()
    assert (here.x.shape, here.x.dtype, here.x.nbytes) == (there.x.shape, there.x.dtype, there.x.nbytes)
    rows = here.parts.train[::-1].copy()
    np.testing.assert_array_equal(rows, there.parts.train[::-1])
    assert here.x[rows].tobytes() == there.x[rows].tobytes()
    test = here.parts.test
    assert selected(here.x, test)[2:5].tobytes() == there.x[test][2:5].tobytes()
    assert here.rows_for(there.features, test)[:].tobytes() == there.x[test].tobytes()


def test_a_version_is_streamed_from_the_given_size_on(table: DatasetFile) -> None:
    size = Path(table.path).stat().st_size
    encoded = loaded(table, None).x.nbytes
    assert not loaded(table, max(size, encoded)).is_streamed
    assert loaded(table, max(size, encoded) - 1).is_streamed


def test_the_folds_of_a_streamed_version_have_pipelines_of_their_own(table: DatasetFile) -> None:
    there, here = loaded(table, None), loaded(table, STREAMED)
    rows = there.parts.train[:150]
    assert here.fitted_on(rows).features == there.fitted_on(rows).features != there.features
    assert here.fitted_on(rows).x[:].tobytes() == there.fitted_on(rows).x[:].tobytes()


def test_the_order_of_an_epoch_uses_each_row_once_and_few_parts_of_the_file_at_a_time() -> None:
    parts = np.arange(0, 20 * WINDOW_PARTS * 10 + 1, 10)
    x = np.arange(int(parts[-1]))[:, None]
    batches = Batches(x, x, np.ones(len(x), np.float32), size=4, seed=3, shuffle=True, parts=parts)
    orders = [batches.order(epoch) for epoch in (1, 2, 1)]
    assert sorted(orders[0].tolist()) == list(range(len(x)))
    assert not np.array_equal(orders[0], orders[1])
    np.testing.assert_array_equal(orders[0], orders[2])
    for window in orders[0].reshape(-1, 10 * WINDOW_PARTS):
        assert len(np.unique(window // 10)) == WINDOW_PARTS
        assert not np.array_equal(window, np.sort(window))
    in_order = dataclasses.replace(batches, shuffle=False)
    np.testing.assert_array_equal(in_order.order(1), np.arange(len(x)))


def threads_of_prefetching() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("prefetch")]


def test_mean_and_variance_of_streamed_rows_are_those_of_the_rows_in_memory(
    monkeypatch: pytest.MonkeyPatch, table: DatasetFile
) -> None:
    from workers.engine.models.scaling import measure_scaling

    there, here = loaded(table, None), loaded(table, STREAMED)
    monkeypatch.setattr("workers.engine.data.rows.SCANNED_BYTES", SCANNED_BYTES // 10_000)
    x, y = here.take(here.parts.train)
    scaling, expected = (measure_scaling(rows, y, here.profile) for rows in (x, there.x[there.parts.train]))
    np.testing.assert_allclose(scaling.x_mean, expected.x_mean, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(scaling.x_variance, expected.x_variance, rtol=1e-9)
    assert scaling.x_range == expected.x_range


def test_work_whose_duration_depends_on_the_data_is_announced_again_and_again(
    monkeypatch: pytest.MonkeyPatch, table: DatasetFile
) -> None:
    from workers.engine import phases
    from workers.engine.models.scaling import measure_scaling

    begun: list[str] = []
    with phases.announced_to(begun.append):
        monkeypatch.setattr(phases, "INTERVAL", math.inf)
        loaded(table, STREAMED)
        assert begun == []
        monkeypatch.setattr(phases, "INTERVAL", 0.0)
        dataset = loaded(table, STREAMED)
        assert set(begun) == {"loading"}
        assert len(begun) >= len(present(dataset.features).columns)
        begun.clear()
        measure_scaling(dataset.x, dataset.y, dataset.profile)
    assert set(begun) == {"loading"}


def test_trees_refuse_a_version_whose_rows_are_streamed(table: DatasetFile) -> None:
    from workers.engine.training.prepare import prepare

    dataset = loaded(table, STREAMED)
    with pytest.raises(BadSpec, match="the template trees needs all rows in memory"):
        prepare(spec_of("t", "trees"), dataset, dataset.parts.train, name="t", seed=0)


def test_single_columns_and_first_rows_are_read_without_the_rest_of_the_file(table: DatasetFile) -> None:
    columns = UploadedColumns(table)
    assert "city" in columns
    assert columns.values("city").tolist() == read_arrays(Path(table.path))["column_2"].tolist()
    with pytest.raises(BadData, match="no column 'town'"):
        columns.values("town")
    assert MappedColumns(Path(table.path)).head("x", 2) is None


def test_items_are_made_in_order_in_advance_and_errors_are_raised_in_their_place() -> None:
    produced: list[int] = []

    def make(number: int) -> int:
        produced.append(number)
        if number == 5:
            raise BadData("unreadable")
        return number

    def makers() -> Iterator[Callable[[], Any]]:
        return (partial(make, number) for number in itertools.count())

    waiting = Waiting()
    items = prefetched(makers(), waiting)
    assert [next(items) for _ in range(5)] == [0, 1, 2, 3, 4]
    with pytest.raises(BadData, match="unreadable"):
        next(items)
    assert waiting.seconds > 0
    assert produced[:6] == [0, 1, 2, 3, 4, 5]
    produced.clear()
    items = prefetched(makers(), waiting)
    next(items)
    items.close()
    assert max(produced) < 4
    assert not threads_of_prefetching()
