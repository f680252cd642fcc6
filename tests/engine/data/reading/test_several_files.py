"""Several files in one format are one table: their rows follow each other, and their columns must agree."""

import csv
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import pytest

from jobs.spec.data.dialect import DialectRequest
from jobs.spec.data.file_limits import FileLimits
from workers.engine.data.reading import several
from workers.engine.data.reading.bad_rows import BadRows
from workers.engine.data.reading.joined_tables import join
from workers.engine.data.reading.several import read_csv_files, read_json_files
from workers.engine.data.spilled import Spill
from workers.engine.data.table import Table, read_npz, read_parquet
from workers.engine.errors import BadData, DamagedFile, TooLarge


def files(folder: Path, *contents: str | bytes) -> list[Path]:
    paths = []
    for number, content in enumerate(contents, start=1):
        path = folder / f"part-{number}"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        paths.append(path)
    return paths


def rows(table: Table) -> dict[str, list[Any]]:
    return {name: column.tolist() for name, column in table.columns.items()}


def spill(folder: Path, name: str = "spill", from_bytes: int = 10**9) -> Spill:
    place = folder / name
    place.mkdir()
    return Spill(place, from_bytes=from_bytes)


def read_parts(folder: Path, *contents: str | bytes, bad: BadRows | None = None, **options: Any) -> Table:
    place = spill(folder, f"spill-{len(list(folder.iterdir()))}", **options)
    paths = files(folder, *contents)
    return read_csv_files(paths, FileLimits(), DialectRequest(), bad or BadRows(), place)


def test_rows_of_tables_of_text_follow_each_other_in_the_given_order(tmp_path: Path) -> None:
    table = read_parts(tmp_path, "a,b\n3,x\n", "b,a\ny,1\nz,2\n")
    assert rows(table) == {"a": [3, 1, 2], "b": ["x", "y", "z"]}


@pytest.mark.parametrize("second", ['b, a\n"y", 2\n"w", "3"\n', 'a, b\n2, "y"\n"3", "w"\n'])
def test_a_further_file_may_have_spaces_before_its_quotes(tmp_path: Path, second: str) -> None:
    table = read_parts(tmp_path, 'a,b\n1,"x"\n', second)
    assert rows(table) == {"a": [1, 2, 3], "b": ["x", "y", "w"]}


def test_numbers_stay_texts_in_all_files_where_a_person_has_stated_their_rule(tmp_path: Path) -> None:
    paths = files(tmp_path, "a,b\n1.234,5\n", "a,b\n-999,6\n")
    table = read_csv_files(
        paths, FileLimits(), DialectRequest(), BadRows(), spill(tmp_path), stay_texts=["a"]
    )
    assert rows(table) == {"a": ["1.234", "-999"], "b": [5, 6]}


def test_the_type_of_a_column_follows_from_all_files(tmp_path: Path) -> None:
    table = read_parts(tmp_path, "zip,n\n01234,1\n", "zip,n\n99,2.5\n", "zip,n\nA1,\n")
    assert table.columns["zip"].tolist() == ["01234", "99", "A1"]
    assert table.columns["n"].tolist()[:2] == [1.0, 2.5]
    assert np.isnan(table.columns["n"][2])


def test_further_files_are_written_as_the_first_one_but_may_have_another_encoding(tmp_path: Path) -> None:
    table = read_parts(tmp_path, "a;b\n1,5;é\n", "a;b\n2;x\n", "a;b\n3;é\n".encode("latin-1"))
    assert rows(table) == {"a": [1.5, 2.0, 3.0], "b": ["é", "x", "é"]}


@pytest.mark.parametrize(
    ("content", "difference"),
    [
        ("a,c\n1,2\n", "part-2 has other columns than part-1: it lacks 'b' and has 'c'"),
        ("a\n1\n", "part-2 has other columns than part-1: it lacks 'b'"),
        ("a,b,c,d\n1,2,3,4\n", "part-2 has other columns than part-1: it has 'c', 'd'"),
    ],
)
def test_a_file_with_other_columns_is_refused_with_the_difference(
    tmp_path: Path, content: str, difference: str
) -> None:
    with pytest.raises(BadData, match=difference):
        read_parts(tmp_path, "a,b\n1,2\n", content)


def test_damaged_rows_name_their_file_and_count_in_each_of_them(tmp_path: Path) -> None:
    bad = BadRows(0.5)
    read_parts(tmp_path, "a,b\n1,2\n", "a,b\n1,2\n\n1,2,3\n", bad=bad)
    assert bad.rows == [(4, "file 2: 3 fields instead of 2", "1,2,3")]
    with pytest.raises(BadData, match="line 3 of part-2 has 3 fields"):
        read_parts(tmp_path, "a,b\n1,2\n", "a,b\n1,2\n1,2,3\n")


def test_a_damaged_row_is_found_in_a_file_with_another_order_of_columns(tmp_path: Path) -> None:
    bad = BadRows(0.5)
    table = read_parts(tmp_path, "a,b\n1,x\n", "b,a\ny,2\nz,3,4\n", bad=bad)
    assert (rows(table), len(bad.rows)) == ({"a": [1, 2], "b": ["x", "y"]}, 1)


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"a,b\n1,\x81\xff\x00\x01\x02\x03\n", id="bytes that are no text"),
        pytest.param("a,b\n1,x\n".encode("utf-16")[:-1], id="cut UTF-16"),
        pytest.param(b"b,a\n\x81\xff\x00\x01\x02\x03,1\n", id="no text in another order"),
    ],
)
@pytest.mark.parametrize("is_first", [True, False])
def test_a_file_that_is_no_text_is_damaged_and_named(tmp_path: Path, content: bytes, is_first: bool) -> None:
    contents: list[str | bytes] = [content, "a,b\n2,y\n"] if is_first else ["a,b\n2,y\n", content]
    with pytest.raises(DamagedFile, match=f"part-{1 if is_first else 2} is not a readable CSV file"):
        read_parts(tmp_path, *contents)


def test_a_file_with_another_order_of_columns_may_have_long_fields(tmp_path: Path) -> None:
    before = csv.field_size_limit(131_072)
    try:
        table = read_parts(tmp_path, "a,b\n1,x\n", f"b,a\n{'y' * 200_000},2\n")
    finally:
        csv.field_size_limit(before)
    assert table.columns["a"].tolist() == [1, 2]
    assert len(table.columns["b"][1]) == 200_000


def test_damage_that_only_the_whole_table_shows_keeps_its_code(tmp_path: Path) -> None:
    damage = DamagedFile("this file is damaged: line 3 of all files is no text")
    with mock.patch.object(several, "read_csv", side_effect=damage), pytest.raises(DamagedFile) as caught:
        read_parts(tmp_path, "a,b\n1,x\n", "a,b\n2,y\n")
    assert str(caught.value) == "this file is damaged: line 2 of part-2 is no text"
    assert caught.value.code == "damaged_file"


def test_lines_of_json_follow_each_other(tmp_path: Path) -> None:
    first, second, other, broken = files(
        tmp_path,
        '{"a": 1, "b": "x"}\n{"a": 2}',
        '{"b": "y", "a": 3.5}\n',
        '{"a": 1, "c": 2}\n',
        '{"a": 1, "b": 2}\n{',
    )

    def read(*paths: Path) -> Table:
        place = spill(tmp_path, f"spill-{len(list(tmp_path.iterdir()))}")
        return read_json_files(paths, FileLimits(), BadRows(), place)

    assert rows(read(first, second)) == {"a": [1.0, 2.0, 3.5], "b": ["x", "", "y"]}
    with pytest.raises(BadData, match="part-3 has other columns than part-1: it lacks 'b' and has 'c'"):
        read(first, other)
    with pytest.raises(BadData, match="line 2 of part-4: no JSON"):
        read(first, broken)


@pytest.mark.parametrize("from_bytes", [0, 10**9])
def test_a_large_table_of_several_files_is_read_in_parts(tmp_path: Path, from_bytes: int) -> None:
    one = "a,b\n" + "".join(f"{i},x{i}\n" for i in range(1000))
    two = "a,b\n" + "".join(f"{i}.5,y{i}\n" for i in range(1000))
    table = read_parts(tmp_path, one, two, from_bytes=from_bytes)
    assert table.columns["a"].tolist() == [*map(float, range(1000)), *(i + 0.5 for i in range(1000))]
    assert table.columns["b"].tolist()[999:1001] == ["x999", "y0"]


def parquet(columns: Mapping[str, Any]) -> bytes:
    buffer = io.BytesIO()
    pd.DataFrame(columns).to_parquet(buffer)
    return buffer.getvalue()


def test_parquet_files_are_joined_if_their_columns_have_one_kind(tmp_path: Path) -> None:
    paths = files(
        tmp_path,
        parquet({"a": [1, 2], "b": ["x", "y"]}),
        parquet({"b": ["z"], "a": [0.5]}),
        parquet({"a": ["one"], "b": ["z"]}),
        parquet({"a": [1]}),
    )
    one, two, three, four = paths

    def joined(*paths: Path) -> Table:
        place = spill(tmp_path, f"spill-{len(list(tmp_path.iterdir()))}")
        return join(paths, read_parquet, FileLimits(), place)

    assert rows(joined(one, two)) == {"a": [1.0, 2.0, 0.5], "b": ["x", "y", "z"]}
    with pytest.raises(BadData, match="column 'a' has texts in part-3, but numbers in part-1"):
        joined(one, three)
    with pytest.raises(BadData, match="part-4 has other columns than part-1: it lacks 'b'"):
        joined(one, four)


def test_long_whole_numbers_are_texts_in_all_parquet_files_if_one_has_a_gap(tmp_path: Path) -> None:
    long = 2**60 + 1
    one = parquet({"a": pd.array([long, None], "Int64")})
    paths = files(
        tmp_path, parquet({"a": [long, 7]}), one, parquet({"a": [1.0, None]}), parquet({"a": [0.5]})
    )
    table = join(paths[:3], read_parquet, FileLimits(), spill(tmp_path))
    assert rows(table) == {"a": [str(long), "7", str(long), "", "1", ""]}
    with pytest.raises(BadData, match="column 'a' has texts in part-2, but numbers in part-4"):
        join([paths[3], paths[1]], read_parquet, FileLimits(), spill(tmp_path, "other"))


def arrays(folder: Path, *columns: np.ndarray) -> list[Path]:
    paths = []
    for number, column in enumerate(columns, start=1):
        paths.append(folder / f"part-{number}")
        with paths[-1].open("wb") as file:
            np.savez_compressed(file, a=column)
    return paths


def test_a_further_file_is_read_only_within_the_rest_of_the_limit(tmp_path: Path) -> None:
    paths = arrays(tmp_path, *[np.zeros(1000)] * 3)
    limits_of_reads = []

    def read(path: Path, limits: FileLimits, _: Spill) -> Table:
        limits_of_reads.append(limits.expanded_bytes)
        return read_npz(path, limits)

    message = r"^part-2 expands to 8,128 bytes; at most 4,000 .* The files before it take 8,000 of the 12,000"
    with pytest.raises(TooLarge, match=message):
        join(paths, read, FileLimits(expanded_bytes=12_000), spill(tmp_path))
    assert limits_of_reads == [12_000, 4_000]


def test_numbers_of_two_widths_are_counted_with_the_larger_one(tmp_path: Path) -> None:
    paths = arrays(tmp_path, np.zeros(10_000, np.uint8), np.zeros(10))
    limits = FileLimits(expanded_bytes=40_000)
    with pytest.raises(TooLarge, match="all files expands to 80,080 bytes; at most 40,000 are read"):
        join(paths, lambda path, rest, _: read_npz(path, rest), limits, spill(tmp_path))


def test_the_sizes_of_all_files_are_checked_before_one_is_read(tmp_path: Path) -> None:
    limits, place = FileLimits(expanded_bytes=100), spill(tmp_path)
    message = "2 files have 120 bytes together; at most 100 are read"
    paths = files(tmp_path, b"x" * 60, b"x" * 60)
    read = mock.Mock()
    with pytest.raises(TooLarge, match=message):
        join(paths, read, limits, place)
    with pytest.raises(TooLarge, match=message):
        read_csv_files(paths, limits, DialectRequest(), BadRows(), place)
    with pytest.raises(TooLarge, match=message):
        read_json_files(paths, limits, BadRows(), place)
    assert not read.called
    assert not list(place.folder.iterdir())


def test_images_of_several_files_have_one_shape(tmp_path: Path) -> None:
    paths = []
    for number, shape in enumerate([(2, 4, 4), (3, 4, 4), (1, 5, 4)], start=1):
        paths.append(tmp_path / f"part-{number}")
        with paths[-1].open("wb") as file:
            np.savez(file, image=np.zeros(shape), y=np.zeros(shape[0]))
    limits = FileLimits()
    table = join(paths[:2], lambda path, rest, _: read_npz(path, rest), limits, spill(tmp_path, "one"))
    assert table.columns["image"].shape == (5, 4, 4)
    with pytest.raises(BadData, match="column 'image' has numbers × 5 × 4 in part-3, but numbers × 4 × 4"):
        join([paths[0], paths[2]], lambda path, rest, _: read_npz(path, rest), limits, spill(tmp_path, "two"))
