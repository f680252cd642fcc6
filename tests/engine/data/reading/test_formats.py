"""Upload formats: text dialects, JSON Lines, Arrow and NumPy arrays, and rows that cannot be read."""

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from jobs.spec.data.dialect import Dialect, DialectRequest
from jobs.spec.data.file_limits import FileLimits
from tests.engine.helpers import profiled
from workers.engine.data.reading.bad_rows import BadRows
from workers.engine.data.reading.csv_file import read_csv
from workers.engine.data.reading.json_lines import read_json_lines
from workers.engine.data.store import read_arrays
from workers.engine.data.table import Table, read_array, read_arrow
from workers.engine.errors import BadData, DamagedFile

FRAME = pa.table({"a": [1, 2, None], "city": ["Paris", None, "Rome"], "y": [0, 1, 0]})


def file_of(folder: Path, content: str | bytes, encoding: str = "utf-8") -> Path:
    path = folder / "data.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode(encoding))
    return path


def columns(table: Table) -> dict[str, list[Any]]:
    return {name: column.tolist() for name, column in table.columns.items()}


@pytest.mark.parametrize("encoding", ["cp1252", "utf-8", "utf-8-sig", "utf-16"])
def test_a_table_with_semicolons_and_decimal_commas_is_read(tmp_path: Path, encoding: str) -> None:
    text = 'Straße;Fläche;Zimmer\n"Am Wall; 3";1.234,5;3\nMarkt;80,25;\n'
    table = read_csv(file_of(tmp_path, text, encoding))
    assert table.columns["Straße"].tolist() == ["Am Wall; 3", "Markt"]
    np.testing.assert_array_equal(table.columns["Fläche"], [1234.5, 80.25])
    np.testing.assert_array_equal(table.columns["Zimmer"], [3.0, np.nan])
    assert table.dialect is not None and (table.dialect.delimiter, table.dialect.decimal) == (";", ",")


def test_latin_1_is_found_far_behind_the_sample(tmp_path: Path) -> None:
    rows = b"1,plain\n" * 20_000
    table = read_csv(file_of(tmp_path, b"a,b\n" + rows + b"2,caf\xe9\n"))
    assert table.columns["b"][-1] == "café"


def test_a_file_without_header_has_numbered_columns(tmp_path: Path) -> None:
    assert columns(read_csv(file_of(tmp_path, "1\t2\n3\t4\n"))) == {"column_1": [1, 3], "column_2": [2, 4]}


def test_a_person_corrects_the_dialect(tmp_path: Path) -> None:
    path = file_of(tmp_path, "a;b,c\n1;2,3\n")
    table = read_csv(path, request=DialectRequest(delimiter=",", header=False))
    assert columns(table) == {"column_1": ["a;b", "1;2"], "column_2": ["c", "3"]}
    assert table.dialect == Dialect(delimiter=",", header=False)


def test_spaces_after_delimiters_do_not_break_quotes(tmp_path: Path) -> None:
    table = read_csv(file_of(tmp_path, 'a, b, y\n1, "x, y", 0\n2, "z", 1\n'))
    assert columns(table) == {"a": [1, 2], "b": ["x, y", "z"], "y": [0, 1]}


def test_postal_codes_keep_their_zeros(tmp_path: Path) -> None:
    file = profiled(tmp_path, source="csv", path=str(file_of(tmp_path, "zip,y\n01067,0\n10115,1\n80331,0\n")))
    column = file.profile["columns"][0]
    assert (column["type"], column["values"]) == ("category", ["01067", "10115", "80331"])


def test_numbers_read_as_python_reads_them(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    drawn = rng.normal(size=500) * 10.0 ** rng.integers(-300, 300, 500)
    numbers = [repr(number) for number in drawn.tolist()]
    table = read_csv(file_of(tmp_path, "a\n" + "\n".join(numbers) + "\n"))
    np.testing.assert_array_equal(table.columns["a"], [float(number) for number in numbers])


def test_line_breaks_in_quotes_belong_to_the_text(tmp_path: Path) -> None:
    table = read_csv(file_of(tmp_path, 'a,y\n"one\ntwo",0\nthree,1\n'))
    assert table.columns["a"].tolist() == ["one\ntwo", "three"]


def test_damaged_rows_are_left_out_up_to_a_share_and_written_to_a_file(tmp_path: Path) -> None:
    text = "a,y\n" + "".join(f"{i},{i % 2}\n" for i in range(20)) + "7,8,9\n21\n"
    path = file_of(tmp_path, text)
    file = profiled(tmp_path, source="csv", path=str(path), reading={"max_bad_share": 0.1})
    assert (file.profile["rows"], file.profile["bad_rows"]) == (20, 2)
    with (tmp_path / "bad_rows.csv").open(newline="") as written:
        assert list(csv.reader(written)) == [
            ["line", "reason", "text"],
            ["22", "3 fields instead of 2", "7,8,9"],
            ["23", "1 fields instead of 2", "21"],
        ]
    refused = r"2 of 22 rows of data.csv cannot be read; at most a share of 0.05.* Damaged rows"
    with pytest.raises(BadData, match=refused):
        read_csv(path, bad=BadRows(0.05))


def test_json_lines_become_columns_and_absent_keys_are_missing(tmp_path: Path) -> None:
    path = file_of(
        tmp_path, '{"a": 1, "t": "x"}\n\n{"t": "y", "b": true, "a": 2.5}\n{"b": false, "t": null}\n'
    )
    table = read_json_lines(path)
    np.testing.assert_array_equal(table.columns["a"], [1, 2.5, np.nan])
    assert table.columns["t"].tolist() == ["x", "y", ""]
    assert table.columns["b"].tolist() == ["", "true", "false"]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "no JSON"),
        ("[1]", "no JSON object"),
        ('{"a": [1]}', "a list as 'a', which has single values in lines before"),
        ('{"a": [[1]]}', "a nested list or an object as 'a'"),
        ('{"a": {"b": 1}}', "a nested list or an object as 'a'"),
    ],
)
def test_a_line_that_is_no_flat_object_is_named(tmp_path: Path, line: str, reason: str) -> None:
    path = file_of(tmp_path, f'{{"a": 1}}\n{line}\n{{"a": 2}}\n')
    with pytest.raises(BadData) as refused:
        read_json_lines(path)
    assert "The first is line 2: " + reason in str(refused.value)
    assert read_json_lines(path, bad=BadRows(0.5)).columns["a"].tolist() == [1, 2]


def test_json_lines_are_counted_before_they_take_memory(tmp_path: Path) -> None:
    path = file_of(tmp_path, '{"a":1}\n' * 5000)
    with pytest.raises(BadData, match="expands to"):
        read_json_lines(path, FileLimits(expanded_bytes=100_000))


@pytest.mark.parametrize("kind", ["file", "stream", "compressed"])
def test_arrow_is_read_like_its_table(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "data.arrow"
    options = pa.ipc.IpcWriteOptions(compression="zstd" if kind == "compressed" else None)
    new = pa.ipc.new_stream if kind == "stream" else pa.ipc.new_file
    with new(str(path), FRAME.schema, options=options) as writer:
        writer.write_table(FRAME)
    table = read_arrow(path)
    np.testing.assert_array_equal(table.columns["a"], [1, 2, np.nan])
    assert table.columns["city"].tolist() == ["Paris", "", "Rome"]


def test_an_arrow_file_that_unpacks_to_too_much_is_refused(tmp_path: Path) -> None:
    frame = pa.table({"a": np.zeros(200_000)})
    path = tmp_path / "data.arrow"
    with pa.ipc.new_file(
        str(path), frame.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")
    ) as writer:
        writer.write_table(frame)
    assert path.stat().st_size < 10_000
    with pytest.raises(BadData, match="expands to"):
        read_arrow(path, FileLimits(expanded_bytes=1_000_000))


def test_a_damaged_arrow_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "data.arrow"
    path.write_bytes(b"ARROW1\0\0" + b"\xff" * 100)
    with pytest.raises(DamagedFile, match=r"data.arrow is not a readable Arrow file"):
        read_arrow(path)


def test_one_array_has_numbered_columns(tmp_path: Path) -> None:
    np.save(tmp_path / "data.npy", np.arange(6.0).reshape(3, 2))
    assert columns(read_array(tmp_path / "data.npy")) == {"column_1": [0, 2, 4], "column_2": [1, 3, 5]}
    np.save(tmp_path / "data.npy", np.arange(6))
    with pytest.raises(BadData, match="one array must have rows and columns"):
        read_array(tmp_path / "data.npy")


@pytest.mark.parametrize(
    "text", ["\n\na,y\n1,0\n2,1\n", "\r\n\r\na,y\r\n1,0\r\n2,1\r\n", "\r\ra,y\r1,0\r2,1\r"]
)
def test_empty_lines_before_the_header_are_no_rows(tmp_path: Path, text: str) -> None:
    assert columns(read_csv(file_of(tmp_path, text.encode()))) == {"a": [1, 2], "y": [0, 1]}


def test_a_line_break_in_a_name_belongs_to_the_name(tmp_path: Path) -> None:
    table = read_csv(file_of(tmp_path, '"size\nin m",y\n1,0\n2,1\n'))
    assert columns(table) == {"size\nin m": [1, 2], "y": [0, 1]}


def test_a_delimiter_at_the_end_of_each_row_makes_no_column(tmp_path: Path) -> None:
    assert columns(read_csv(file_of(tmp_path, "a,y\n1,0,\n2,1,\n"))) == {"a": [1, 2], "y": [0, 1]}


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["0,125", "1,5"], [0.125, 1.5]),
        (["0.125", "1.5"], [0.125, 1.5]),
        (["3,125 %", "12,5%"], [3.125, 12.5]),
        (["1,5e3", "2"], [1500, 2]),
        (["1.234", "12.345,5"], [1234, 12345.5]),
    ],
)
def test_numbers_with_a_decimal_comma_have_their_values(
    tmp_path: Path, values: list[str], expected: Any
) -> None:
    text = "a;b;y\n" + "".join(f"{value};7,5;{i}\n" for i, value in enumerate(values))
    file = profiled(tmp_path, source="csv", path=str(file_of(tmp_path, text)))
    np.testing.assert_array_equal(read_arrays(Path(file.path))["column_0"], expected)


def written(path: Path, *arrays: pa.Array) -> Path:
    frame = pa.table(dict(zip("abc", arrays, strict=False)))
    with pa.ipc.new_file(str(path), frame.schema) as writer:
        writer.write_table(frame)
    return path
