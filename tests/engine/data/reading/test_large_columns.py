"""Columns in large files with other formats, read one by one."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jobs.spec.data.file_limits import DEFAULT_LIMITS, FileLimits
from tests.engine.data.reading.test_large_files import assert_same
from tests.engine.helpers import csv_file, profiled
from workers.engine.data import spilled
from workers.engine.data.reading import csv_file as csv_reader
from workers.engine.data.reading.arrow_columns import to_arrow
from workers.engine.data.reading.bad_rows import BadRows
from workers.engine.data.reading.joined_tables import join
from workers.engine.data.reading.json_lines import read_json_lines
from workers.engine.data.row_hashes import count_equal_rows
from workers.engine.data.spilled import Spill, SpilledColumns
from workers.engine.data.table import Table, read_arrow, read_npz, read_parquet
from workers.engine.data.texts import text_array
from workers.engine.errors import BadData, TargetGaps, TooLarge

FRAME = pd.DataFrame(
    {
        "whole": [1, 2, 3, 4],
        "gaps": pd.array([1, None, 3, 4], "Int64"),
        "truth": pd.array([True, None, False, True], "boolean"),
        "city": pd.Categorical(["Paris", None, "Rome", "Rome"]),
        "when": pd.to_datetime(["2026-01-05", None, "2026-01-06", "2026-01-07"], utc=True),
        "text": ["one", None, "", "four"],
        "a.b": [0.5, np.nan, 2.5, 3.5],
        "y": [0, 1, 0, 1],
    },
    index=pd.Index(["r", "s", "t", "u"], name="row"),
)


def written(frame: pd.DataFrame, folder: Path, kind: str) -> tuple[Path, Callable[..., Table]]:
    """Store a frame in parts of two rows; return the file and its reader."""
    path = folder / f"data.{kind}"
    if kind == "parquet":
        frame.to_parquet(path, row_group_size=2)
        return path, read_parquet
    table = pa.Table.from_pandas(frame)
    with pa.ipc.new_file(str(path), table.schema) as writer:
        writer.write_table(table, max_chunksize=2)
    return path, read_arrow


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_columns_of_a_large_file_of_columns_are_read_one_by_one(
    tmp_path: Path, spill: Spill, kind: str
) -> None:
    path, read = written(FRAME, tmp_path, kind)
    assert_same(read(path, spill=spill), read(path))


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
@pytest.mark.parametrize(
    ("index", "levels"),
    [
        (pd.Index([7, 5, 2, 9]), {}),
        (pd.RangeIndex(4), {}),
        (pd.RangeIndex(3, 11, 2, name="row"), {"row": [3, 5, 7, 9]}),
        (pd.Index(["d", "c", "b", "a"]), {"index": ["d", "c", "b", "a"]}),
        (pd.Index([4, 3, 2, 1], name="row"), {"row": [4, 3, 2, 1]}),
        (pd.Index([4, 3, 2, 1], name="y"), {"y": [4, 3, 2, 1]}),
        (
            pd.MultiIndex.from_arrays([[1, 1, 2, 2], ["a", "b", "a", "b"]], names=[None, "part"]),
            {"index": [1, 1, 2, 2], "part": ["a", "b", "a", "b"]},
        ),
    ],
    ids=["numbers", "range", "named range", "texts", "named numbers", "name of a column", "two levels"],
)
def test_the_levels_of_an_index_are_columns_unless_they_only_number_the_rows(
    tmp_path: Path, spill: Spill, kind: str, index: Any, levels: dict[str, list[Any]]
) -> None:
    path, read = written(FRAME.set_index(index), tmp_path, kind)
    table = read(path, spill=spill)
    others = ["y_2" if name in levels else name for name in FRAME.columns]
    assert list(table.columns) == [*levels, *others]
    assert {name: table.columns[name].tolist() for name in levels} == levels
    assert table.index == (("index",) if "index" in levels else ())
    assert_same(table, read(path))


@pytest.mark.parametrize(
    "rows",
    [
        np.arange(24, dtype=np.uint8).reshape(4, 3, 2),
        np.arange(8.0).reshape(4, 2),
        np.arange(8).reshape(4, 2).astype("datetime64[s]"),
    ],
    ids=["images", "numbers", "times"],
)
def test_rows_that_are_arrays_keep_their_shape_in_a_large_table(spill: Spill, rows: Any) -> None:
    columns = SpilledColumns(spill.folder)
    columns["rows"] = rows
    copied = columns.copy()
    assert copied["rows"].dtype == rows.dtype
    np.testing.assert_array_equal(copied["rows"], rows)
    assert copied.rows("rows") == 4
    assert copied.part("rows", 1, 3).to_pylist() == to_arrow(rows[1:3]).to_pylist()
    np.testing.assert_array_equal(copied.head("rows", 2), rows[:2])


def test_texts_whose_rows_are_arrays_stay_in_memory_in_a_large_table(spill: Spill) -> None:
    texts = text_array(["a", "", "b", "c"] * 2).reshape(4, 2)
    columns = SpilledColumns(spill.folder)
    columns["texts"] = texts
    np.testing.assert_array_equal(columns["texts"], texts)
    assert not list(spill.folder.iterdir())


def test_large_arrays_of_images_of_several_files_are_joined(tmp_path: Path, spill: Spill) -> None:
    paths = [tmp_path / "a.npz", tmp_path / "b.npz"]
    images = np.arange(5 * 4 * 4, dtype=np.uint8).reshape(5, 4, 4)
    for path, part in zip(paths, (slice(0, 2), slice(2, 5)), strict=True):
        np.savez(path, image=images[part], y=np.arange(5)[part])
    table = join(paths, lambda path, limits, _: read_npz(path, limits), DEFAULT_LIMITS, spill)
    np.testing.assert_array_equal(table.columns["image"], images)
    assert table.rows == 5


def test_large_json_lines_give_the_columns_of_small_ones(tmp_path: Path, spill: Spill) -> None:
    path = tmp_path / "data.jsonl"
    values = [
        {"a": 1, "b": True, "c": "x"},
        {"a": 2.5, "b": False, "c": 5},
        {"a": None, "b": True, "late": 1},
        {"b": True, "c": None},
    ]
    path.write_text("".join(json.dumps(value) + "\n" for value in values * 3) + "{\n")
    assert_same(read_json_lines(path, bad=BadRows(0.5), spill=spill), read_json_lines(path, bad=BadRows(0.5)))


def test_a_long_text_of_large_json_lines_is_named_with_its_row(tmp_path: Path, spill: Spill) -> None:
    path = tmp_path / "data.jsonl"
    path.write_text('{"a": "x"}\n' * 10 + '{"a": "' + "y" * 50 + '"}\n')
    with pytest.raises(BadData, match="50 characters in row 11"):
        read_json_lines(path, FileLimits(text_characters=20), spill=spill)


def test_a_large_file_has_the_digest_and_the_profile_of_a_small_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = "".join(
        f"{i},{i * 0.5},{'' if i % 7 == 0 else f'word{i % 5}'},2026-01-{i % 28 + 1:02},{i % 3 == 0}\n"
        for i in range(500)
    )
    path = csv_file(tmp_path, f"id,size,word,day,y\n{rows}")
    small = profiled(tmp_path / "small", source="csv", path=path, target="y")
    monkeypatch.setattr(Spill, "for_size", lambda self, size: self)
    monkeypatch.setattr(spilled, "SMALL_COLUMN_BYTES", 1)
    monkeypatch.setattr(csv_reader, "BLOCK_BYTES", 1024)
    large = profiled(tmp_path / "large", source="csv", path=path, target="y")
    assert large.digest == small.digest
    assert large.profile == small.profile
    names = sorted(file.name for file in (tmp_path / "large").iterdir())
    assert [name for name in names if not name.endswith(".json")] == ["dataset.arrow"]
    overviews = [(tmp_path / side / "overview.json").read_text() for side in ("small", "large")]
    assert overviews[0] == overviews[1]


def test_equal_rows_are_found_among_values_of_every_type() -> None:
    columns = [
        np.array([0.0, -0.0, np.nan, np.nan, 1.5, 1.5]),
        np.array([1, 1, 2, 2, 3, 4]),
        text_array(["a", "a", "", "", "b", "b"]),
        np.array(["2026-01-05", "2026-01-05", "NaT", "NaT", "2026-01-05", "2026-01-05"], "datetime64[us]"),
        np.array([True, True, False, False, True, True]),
    ]
    assert count_equal_rows(columns) == 2
    assert count_equal_rows(columns[2:]) == 3


def test_a_parquet_file_whose_columns_are_spilled_is_profiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = pa.table({"a": np.arange(100) / 7, "word": ["x", "y"] * 50, "y": np.arange(100) % 2})
    pq.write_table(table, tmp_path / "d.parquet")
    monkeypatch.setattr(Spill, "for_size", lambda self, size: self)
    monkeypatch.setattr(spilled, "SMALL_COLUMN_BYTES", 1)
    spilled_one = profiled(tmp_path / "p", source="parquet", path=str(tmp_path / "d.parquet"))
    monkeypatch.undo()
    in_memory = profiled(tmp_path / "m", source="parquet", path=str(tmp_path / "d.parquet"))
    assert spilled_one.digest == in_memory.digest and spilled_one.profile == in_memory.profile


def test_rows_without_a_target_are_left_out_of_large_files_as_of_small_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = "".join(f"{i},word{i % 3},{'' if i % 10 == 0 else i % 2}\n" for i in range(200))
    task = {"source": "csv", "path": csv_file(tmp_path, f"a,b,y\n{rows}"), "rows_without_target": "leave_out"}
    small = profiled(tmp_path / "small", **task)
    monkeypatch.setattr(Spill, "for_size", lambda self, size: self)
    monkeypatch.setattr(spilled, "SMALL_COLUMN_BYTES", 1)
    large = profiled(tmp_path / "large", **task)
    assert (large.digest, large.profile) == (small.digest, small.profile)
    assert large.profile["rows_without_target"] == 20


def test_a_large_file_names_the_words_in_place_of_a_target_as_a_small_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = "".join(f"{i},{'None' if i % 50 == 7 else i * 0.5}\n" for i in range(200))
    task = {"source": "csv", "path": csv_file(tmp_path, f"a,y\n{rows}")}
    with pytest.raises(TargetGaps) as small:
        profiled(tmp_path / "small", **task)
    monkeypatch.setattr(Spill, "for_size", lambda self, size: self)
    monkeypatch.setattr(csv_reader, "BLOCK_BYTES", 256)
    with pytest.raises(TargetGaps, match=r"'None' in 4.*keep the words as classes") as large:
        profiled(tmp_path / "large", **task)
    assert str(large.value) == str(small.value)


def test_a_large_file_has_the_offer_about_three_decimals_of_a_small_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = "".join(f"{i + 1}.{i + 100},{i % 2}\n" for i in range(200))
    task = {"source": "csv", "path": csv_file(tmp_path, f"a,y\n{rows}")}
    small = profiled(tmp_path / "small", **task).profile
    monkeypatch.setattr(Spill, "for_size", lambda self, size: self)
    monkeypatch.setattr(csv_reader, "BLOCK_BYTES", 256)
    assert profiled(tmp_path / "large", **task).profile == small
    assert any("three digits behind it" in offer["finding"] for offer in small["offers"])


def test_large_json_lines_with_lists_of_labels_are_read_as_small_ones(tmp_path: Path, spill: Spill) -> None:
    path = tmp_path / "data.jsonl"
    mixed = '{"a": 1, "y": "x"}\n'
    path.write_text('{"a": 1, "y": ["x", "z"]}\n' * 5 + mixed + '{"a": 2, "y": []}\n{"a": 3}\n')
    table = read_json_lines(path, bad=BadRows(0.5), spill=spill)
    assert_same(table, read_json_lines(path, bad=BadRows(0.5)))
    assert table.bad_rows == 1


def test_a_table_that_is_read_in_parts_may_be_larger_than_what_is_read_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workers.engine.tasks.profile.Spill", partial(Spill, from_bytes=1000))
    path = csv_file(tmp_path, "a,y\n" + "1.5,no\n2.5,yes\n" * 2_000)
    size = Path(path).stat().st_size
    limits = FileLimits(expanded_bytes=size // 2, table_bytes=10 * size)
    assert profiled(tmp_path / "1", source="csv", path=path, limits=limits).profile["rows"] == 4_000
    with pytest.raises(TooLarge, match="at most"):
        less = FileLimits(expanded_bytes=size // 2, table_bytes=size // 2)
        profiled(tmp_path / "2", source="csv", path=path, limits=less)
    with pytest.raises(TooLarge, match="at most"):
        profiled(tmp_path / "3", source="npy", path=path, limits=limits)
