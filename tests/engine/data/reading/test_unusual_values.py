"""Unusual values in uploads: gaps, signs, spaces, offsets and numbers."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from jobs.spec.data.file_limits import FileLimits
from tests.engine.data.reading.test_formats import columns, file_of, written
from tests.engine.helpers import profiled
from workers.engine.data.reading.bad_rows import BadRows
from workers.engine.data.reading.column_types import convert
from workers.engine.data.reading.csv_file import read_csv
from workers.engine.data.reading.json_lines import read_json_lines
from workers.engine.data.statistics import describe_column
from workers.engine.data.store import read_arrays
from workers.engine.data.table import read_arrow, read_npz
from workers.engine.data.texts import text_array
from workers.engine.errors import BadData, DamagedFile, TooLarge


@pytest.mark.parametrize("word", ["k.A.", "n/a", "-", "?", "Unbekannt"])
@pytest.mark.parametrize(
    ("first", "second", "day"), [("1.234,5", "12,5 %", "24.12.2026"), ("1234.5", "12.5 %", "2026-12-24")]
)
def test_words_for_missing_values_are_gaps_between_numbers_and_dates(
    tmp_path: Path, word: str, first: str, second: str, day: str
) -> None:
    rows = [f"{first};{word};{day};{word};{word}", f"{word};{second};{word};red;{word}"] * 3
    text = "size;rate;day;colour;nothing;y\n" + "".join(f"{row};{i}\n" for i, row in enumerate(rows))
    file = profiled(tmp_path, source="csv", path=str(file_of(tmp_path, text)))
    kinds = {column["name"]: (column["type"], column["missing"]) for column in file.profile["columns"]}
    assert kinds.pop("y") == ("integer", 0)
    gap = (3, 6) if word == "n/a" else (0, 0)
    assert kinds == {
        "size": ("number", 3),
        "rate": ("number", 3),
        "day": ("date", 3),
        "colour": ("category", gap[0]),
        "nothing": ("number" if gap[1] else "category", gap[1]),
    }
    arrays = read_arrays(Path(file.path))
    np.testing.assert_array_equal(arrays["column_0"][:2], [1234.5, np.nan])
    np.testing.assert_array_equal(arrays["column_1"][:2], [np.nan, 12.5])


def test_a_postal_code_with_a_gap_stays_a_text(tmp_path: Path) -> None:
    table = read_csv(file_of(tmp_path, "code;size\n01234;1,5\n-;2,5\n"))
    assert table.columns["code"].tolist() == ["01234", "-"]


def test_a_word_for_a_missing_number_is_a_gap_where_a_person_chose_the_type(tmp_path: Path) -> None:
    values = convert(text_array(["1.5", "k.A."]), "number", "size").values
    assert values is not None and np.isnan(values[1])
    with pytest.raises(BadData, match="row 2 has -"):
        convert(text_array(["true", "-"]), "boolean", "gift")


def test_whole_numbers_with_a_plus_sign_are_whole_numbers(tmp_path: Path) -> None:
    assert read_csv(file_of(tmp_path, "a,y\n+7,0\n-3,1\n")).columns["a"].tolist() == [7, -3]


def test_a_comma_after_a_zero_precedes_decimals(tmp_path: Path) -> None:
    file = profiled(tmp_path, source="csv", path=str(file_of(tmp_path, 'a,y\n"0,125",0\n"1,500",1\n')))
    assert file.profile["columns"][0]["type"] == "number"
    assert read_arrays(Path(file.path))["column_0"].tolist() == [0.125, 1.5]


def test_a_damaged_row_that_a_spreadsheet_would_evaluate_is_quoted(tmp_path: Path) -> None:
    bad = BadRows(0.5)
    read_csv(file_of(tmp_path, "a,y\n1,0\n2,1\n=1+1,2,3\n"), bad=bad)
    bad.write(tmp_path / "bad.csv")
    assert "'=1+1,2,3" in (tmp_path / "bad.csv").read_text()


def test_a_byte_order_mark_before_json_lines_is_skipped(tmp_path: Path) -> None:
    table = read_json_lines(file_of(tmp_path, '{"a": 1}\n{"a": 2}\n', "utf-8-sig"))
    assert columns(table) == {"a": [1, 2]}


def test_keys_that_appear_late_are_counted_before_they_take_memory(tmp_path: Path) -> None:
    many = "{" + ",".join(f'"k{i}":1' for i in range(1000)) + "}\n"
    path = file_of(tmp_path, '{"a":1}\n' * 1000 + many)
    with pytest.raises(BadData, match="expands to"):
        read_json_lines(path, FileLimits(expanded_bytes=1_000_000))
    with pytest.raises(BadData, match=r"has 1,001 columns; at most 100 are read"):
        read_json_lines(path, FileLimits(columns=100))


def test_arrow_offsets_outside_of_the_file_are_refused(tmp_path: Path) -> None:
    offsets = pa.py_buffer(np.array([0, 3, 2**30, 6], np.int32).tobytes())
    broken = pa.StringArray.from_buffers(3, offsets, pa.py_buffer(b"abcdef"))
    with pytest.raises(DamagedFile, match=r"data.arrow is not a readable Arrow file"):
        read_arrow(written(tmp_path / "data.arrow", broken))


def test_arrow_columns_that_are_small_in_the_file_are_counted_as_they_are_read(tmp_path: Path) -> None:
    limits = FileLimits(expanded_bytes=1_000_000)
    for column in (pa.nulls(200_000), pa.array([True] * 200_000)):
        with pytest.raises(BadData, match="expands to 1,600,000 bytes"):
            read_arrow(written(tmp_path / "data.arrow", column), limits)


def test_arrow_buffers_that_claim_more_than_any_memory_are_refused_with_the_size(tmp_path: Path) -> None:
    frame = pa.table({"a": np.zeros(1000)})
    with pa.ipc.new_file(
        str(tmp_path / "data.arrow"), frame.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")
    ) as writer:
        writer.write_table(frame)
    body = (tmp_path / "data.arrow").read_bytes()
    size = (8000).to_bytes(8, "little")
    assert body.count(size) == 1
    (tmp_path / "data.arrow").write_bytes(body.replace(size, (2**63 - 1).to_bytes(8, "little")))
    with pytest.raises(TooLarge, match="expands to 9,223,372,036,854,775,744 bytes"):
        read_arrow(tmp_path / "data.arrow")


def test_arrow_texts_that_are_the_same_bytes_are_counted_for_each_row(tmp_path: Path) -> None:
    view = np.zeros((100, 4), np.int32)
    view[:, 0] = 100_000
    view[:, 1] = np.frombuffer(b"xxxx", np.int32)
    buffers = [None, pa.py_buffer(view.tobytes()), pa.py_buffer(b"x" * 100_000)]
    views = pa.Array.from_buffers(pa.string_view(), 100, buffers)
    path = written(tmp_path / "data.arrow", views)
    with pytest.raises(BadData, match="expands to"):
        read_arrow(path, FileLimits(expanded_bytes=1_000_000))
    assert len(read_arrow(path).columns["a"][99]) == 100_000


def test_a_damaged_row_is_named_by_its_line_in_the_file(tmp_path: Path) -> None:
    bad = BadRows(0.5)
    path = file_of(tmp_path, '\n"size\nin m",y\n\n1,0\n"one\ntwo",1\n2,1,3\n4,0\n5\n')
    read_csv(path, bad=bad)
    assert [number for number, _, _ in bad.rows] == [8, 10]
    with pytest.raises(BadData, match=r"line 8 of data.csv has 3 fields instead of 2: '2,1,3'"):
        read_csv(path)


def test_a_long_text_after_a_space_is_read(tmp_path: Path) -> None:
    table = read_csv(file_of(tmp_path, f'a, b\n1, "x, {"y" * 200_000}"\n2, "z"\n'))
    assert len(str(table.columns["b"][0])) == 200_003


def test_spaces_around_a_word_for_a_missing_value_are_no_part_of_it(tmp_path: Path) -> None:
    table = read_csv(file_of(tmp_path, "a, b, y\n1, NA, x\n2, 3, NA\n3,  , z\n"))
    np.testing.assert_array_equal(table.columns["b"], [np.nan, 3, np.nan])
    assert table.columns["y"].tolist() == ["x", "NA", "z"]


@pytest.mark.parametrize("unit", ["Y", "W", "D", "s", "ns", "ps", "as"])
def test_times_of_any_unit_of_numpy_are_described(tmp_path: Path, unit: str) -> None:
    day = np.array([0, 1, 2, 3] * 5, dtype=f"datetime64[{unit}]")
    np.savez(tmp_path / "t.npz", day=day, a=np.arange(20.0), y=np.arange(20) % 2)
    dataset = profiled(tmp_path / "out", source="npz", path=str(tmp_path / "t.npz"))
    assert dataset.profile["columns"][0]["type"] == "date"


@pytest.mark.parametrize("times", [np.array([2**40], "datetime64[Y]"), np.array([1]).view("datetime64")])
def test_times_that_cannot_be_counted_are_refused(tmp_path: Path, times: Any) -> None:
    np.savez(tmp_path / "t.npz", day=times, y=[1])
    with pytest.raises(BadData, match="array 'day' has times without a unit, or outside of the years"):
        read_npz(tmp_path / "t.npz")


@pytest.mark.parametrize(
    "numbers", [[5e-324, 1e-323, 0.0], [5e-324, 5e-324, -5e-324], [1.0, 1 + 2**-52, 1.0]]
)
def test_numbers_that_hardly_differ_have_a_histogram(numbers: list[float]) -> None:
    assert sum(describe_column("a", np.array(numbers)).histogram) == 3


@pytest.mark.parametrize("numbers", [[1e300, 2e300, 3e300], [-1.7e308, 1.7e308, 1e308]])
def test_the_statistics_of_huge_numbers_are_finite(tmp_path: Path, numbers: list[float]) -> None:
    text = "a,b,y\n" + "".join(f"{number},{i},{i % 2}\n" for i, number in enumerate(numbers))
    column = profiled(tmp_path, source="csv", path=str(file_of(tmp_path, text))).profile["columns"][0]
    assert np.isfinite([column["mean"], column["std"]]).all()
    assert sum(column["histogram"]) == 3
    with pytest.raises(BadData, match="target 'a' has a number above the range of 32-bit floats in row 1"):
        profiled(tmp_path, source="csv", path=str(file_of(tmp_path, text)), target="a", task="regression")
