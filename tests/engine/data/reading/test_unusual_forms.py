"""Text in an unusual form is read equally by both readers, alone and as a part of several files."""

from pathlib import Path

import pytest

from jobs.spec.data.dialect import DialectRequest
from jobs.spec.data.file_limits import DEFAULT_LIMITS
from tests.engine.data.collection import encodings, files
from tests.engine.data.collection.case import TableCase
from tests.engine.data.reading.test_large_files import assert_same
from workers.engine.data.reading.bad_rows import BadRows
from workers.engine.data.reading.csv_file import read_csv
from workers.engine.data.reading.several import read_csv_files
from workers.engine.data.spilled import Spill
from workers.engine.errors import BadData

TEXTS = [
    case
    for case in (*files.INDICES, *files.HEADERS, *files.DELIMITERS, *encodings.CASES)
    if case.refusal is None and not case.name.endswith(".parquet")
]


def written(folder: Path, name: str, content: bytes) -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("case", TEXTS, ids=lambda case: case.name)
def test_a_large_file_gives_the_columns_of_a_small_one(tmp_path: Path, spill: Spill, case: TableCase) -> None:
    path = written(tmp_path, "data", case.content)
    small, large = read_csv(path), read_csv(path, spill=spill)
    assert_same(large, small)
    assert (large.findings, large.index, large.renamed) == (small.findings, small.index, small.renamed)


@pytest.mark.parametrize("case", TEXTS, ids=lambda case: case.name)
def test_two_files_have_the_rows_of_both(tmp_path: Path, spill: Spill, case: TableCase) -> None:
    paths = [written(tmp_path, name, case.content) for name in ("first", "second")]
    alone = read_csv(paths[0])
    both = read_csv_files(paths, DEFAULT_LIMITS, DialectRequest(), BadRows(), spill)
    assert {name: len(both.columns[name]) for name in both.columns} == dict.fromkeys(
        alone.columns, 2 * alone.rows
    )
    for name, column in alone.columns.items():
        assert both.columns[name][: alone.rows].tolist() == pytest.approx(column.tolist(), nan_ok=True)
        assert both.columns[name][alone.rows :].tolist() == pytest.approx(column.tolist(), nan_ok=True)
    assert (both.index, both.renamed, both.dialect) == (alone.index, alone.renamed, alone.dialect)


def test_a_damaged_row_below_titles_and_comments_has_its_line_in_the_file(tmp_path: Path) -> None:
    path = written(tmp_path, "data.csv", b"Report\n\na,b\n# half\n1,2\n3,4,5\n6,7\n")
    with pytest.raises(BadData, match=r"line 6 of data\.csv has 3 fields instead of 2: '3,4,5'"):
        read_csv(path)
    bad = BadRows(0.5)
    assert read_csv(path, bad=bad).columns["a"].tolist() == [1, 6]
    assert bad.rows == [(6, "3 fields instead of 2", "3,4,5")]


def test_a_sign_of_comments_inside_of_quotes_begins_no_comment(tmp_path: Path) -> None:
    path = written(tmp_path, "data.csv", b'# made\na,b\n"one\n# two",1\n')
    assert read_csv(path).columns["a"].tolist() == ["one\n# two"]


def test_known_parts_of_the_form_are_not_detected(tmp_path: Path) -> None:
    path = written(tmp_path, "data.csv", b"x\na,b\n#1,2\n#3,4\n")
    table = read_csv(path, request=DialectRequest(skip_lines=1, comments=False))
    assert table.columns["a"].tolist() == ["#1", "#3"]
    with pytest.raises(BadData, match="has no rows"):
        read_csv(path, request=DialectRequest(skip_lines=1, comments=True))


def test_more_fields_between_commas_are_no_labels_of_rows(tmp_path: Path) -> None:
    path = written(tmp_path, "data.csv", b"price,y\n1,250,0\n3,500,1\n")
    with pytest.raises(BadData, match=r"line 2 of data\.csv has 3 fields instead of 2"):
        read_csv(path)
