"""A dataset version's file: every type comes back as it was, and files from earlier releases are read."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from jobs.messages.task import DatasetFile
from jobs.spec.sections.data import DataSpec
from tests.engine.helpers import csv_file, profiled
from workers.engine.arrays import Array
from workers.engine.data.dataset import load_dataset
from workers.engine.data.reading import arrow_file
from workers.engine.data.reading.arrow_file import read_columns, write_columns
from workers.engine.data.spilled import SpilledColumns
from workers.engine.data.store import read_arrays, write_npz
from workers.engine.data.texts import text_array
from workers.engine.errors import BadData

ROWS = 7
COLUMNS = {
    "float": np.array([0.5, np.nan, np.inf, -0.0, 1e300, 3, 4]),
    "float32": np.linspace(0, 1, ROWS, dtype=np.float32),
    "integer": np.array([1, -(2**63), 2**63 - 1, 0, 5, 6, 7]),
    "byte": np.arange(ROWS, dtype=np.uint8),
    "boolean": np.arange(ROWS) % 2 == 0,
    "text": text_array(["", "ü" * 40, "a\0", "b", "c", "", "x" * 1000]),
    "moment": np.array(["2026-01-05T07:30", "NaT"] + ["1969-12-31"] * 5, "datetime64[us]"),
    "day": np.array(["2026-01-05", "NaT"] + ["1969-12-31"] * 5, "datetime64[D]"),
    "y": np.arange(ROWS),
}


def assert_same(actual: dict[str, Array], expected: dict[str, Array]) -> None:
    assert list(actual) == list(expected)
    for name, array in expected.items():
        assert actual[name].dtype == array.dtype
        assert actual[name].tobytes() == array.tobytes() if array.dtype.kind != "T" else True
        np.testing.assert_array_equal(actual[name], array)


def stored(path: Path) -> dict[str, Array]:
    arrays = read_arrays(path)
    return {str(name): arrays[f"column_{i}"] for i, name in enumerate(arrays["columns"])}


@pytest.mark.parametrize("batch", [3, 65_536])
def test_columns_of_every_type_come_back_as_they_were(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batch: int
) -> None:
    monkeypatch.setattr(arrow_file, "BATCH_ROWS", batch)
    images = np.arange(ROWS * 6, dtype=np.uint8).reshape(ROWS, 2, 3, 1)
    write_columns(tmp_path / "d.arrow", {"x": images, "y": COLUMNS["float32"]}, COLUMNS)
    assert_same(stored(tmp_path / "d.arrow"), COLUMNS)
    arrays = read_arrays(tmp_path / "d.arrow")
    np.testing.assert_array_equal(arrays["x"], images)
    assert arrays["x"].flags.writeable and arrays["column_0"].flags.writeable
    with pa.memory_map(str(tmp_path / "d.arrow")) as file:
        reader = pa.ipc.open_file(file)
        lengths = [reader.get_batch(i).num_rows for i in range(reader.num_record_batches)]
    assert lengths == ([3, 3, 1] if batch == 3 else [7])


def test_spilled_columns_give_the_same_bytes_as_those_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workers.engine.data.spilled.SMALL_COLUMN_BYTES", 1)
    monkeypatch.setattr(arrow_file, "BATCH_ROWS", 3)
    spilled = SpilledColumns(tmp_path)
    for name, column in COLUMNS.items():
        spilled[name] = column
    assert_same(dict(spilled), COLUMNS)
    write_columns(tmp_path / "memory.arrow", {"y": COLUMNS["y"]}, COLUMNS)
    write_columns(tmp_path / "spilled.arrow", {"y": COLUMNS["y"]}, spilled)
    assert (tmp_path / "memory.arrow").read_bytes() == (tmp_path / "spilled.arrow").read_bytes()


def test_a_changed_copy_of_spilled_columns_leaves_the_others_as_they_were(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workers.engine.data.spilled.SMALL_COLUMN_BYTES", 1)
    first = SpilledColumns(tmp_path)
    first["a"] = np.arange(3)
    second = first.copy()
    second["a"] = text_array(["x", "y", "z"])
    first["b"] = np.arange(3) * 2.0
    assert first["a"].tolist() == [0, 1, 2] and second["a"].tolist() == ["x", "y", "z"]
    assert list(second) == ["a"]


def test_an_npz_file_of_an_earlier_release_gives_the_same_training_rows(tmp_path: Path) -> None:
    rows = "".join(f"{'red' if i % 3 else ''},{i},2026-01-{i % 28 + 1:02},{i % 2}\n" for i in range(60))
    file = profiled(tmp_path, source="csv", path=csv_file(tmp_path, f"colour,size,day,y\n{rows}"))
    spec = DataSpec.model_validate({"dataset": "d", "dataset_version": 1})
    new = load_dataset(file, spec)
    write_npz(tmp_path / "dataset.npz", read_arrays(Path(file.path)))
    old = load_dataset(file.model_copy(update={"path": str(tmp_path / "dataset.npz")}), spec)
    np.testing.assert_array_equal(new.x, old.x)
    np.testing.assert_array_equal(new.y, old.y)
    assert new.features == old.features


def test_a_damaged_file_of_a_version_is_named(tmp_path: Path) -> None:
    path = tmp_path / "d.arrow"
    write_columns(path, {"y": COLUMNS["y"]}, COLUMNS)
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(BadData, match=r"d\.arrow is not a readable data set file"):
        read_columns(path)


def test_offsets_outside_of_the_file_of_a_version_are_refused(tmp_path: Path) -> None:
    field = pa.field("y", pa.large_string(), metadata={b"dtype": b"text"})
    batch = pa.record_batch([pa.array(["x" * 12345], pa.large_string())], schema=pa.schema([field]))
    path = tmp_path / "d.arrow"
    with pa.ipc.new_file(str(path), batch.schema) as writer:
        writer.write_batch(batch)
    body = path.read_bytes()
    old, new = np.array([0, 12345], np.int64).tobytes(), np.array([0, 2**40], np.int64).tobytes()
    assert body.count(old) == 1
    path.write_bytes(body.replace(old, new))
    with pytest.raises(BadData, match="not a readable data set file"):
        read_columns(path)


def test_a_file_without_a_table_is_no_version(tmp_path: Path) -> None:
    write_columns(tmp_path / "d.arrow", {"x": COLUMNS["y"]}, {})
    file = profiled(tmp_path / "p", source="csv", path=csv_file(tmp_path, "a,y\n1,0\n2,1\n3,0\n4,1\n"))
    bad = DatasetFile(path=str(tmp_path / "d.arrow"), digest="", profile=file.profile)
    with pytest.raises(BadData, match="is not a data set file"):
        load_dataset(bad, DataSpec.model_validate({"dataset": "d", "dataset_version": 1}))
