"""Large files are read in parts, and give the same columns as if they were read at once."""

from pathlib import Path

import numpy as np
import pytest

from jobs.spec.data.file_limits import FileLimits
from tests.engine.helpers import csv_file
from workers.engine.data.reading import csv_file as csv_reader
from workers.engine.data.reading.bad_rows import BadRows
from workers.engine.data.reading.csv_columns import tables
from workers.engine.data.reading.csv_file import read_csv
from workers.engine.data.spilled import Spill
from workers.engine.data.table import Table
from workers.engine.errors import BadData


def assert_same(actual: Table, expected: Table) -> None:
    assert list(actual.columns) == list(expected.columns)
    for name, column in expected.columns.items():
        assert actual.columns[name].dtype == column.dtype, name
        np.testing.assert_array_equal(actual.columns[name], column)
        if column.dtype.kind == "f":
            assert actual.columns[name].tobytes() == column.tobytes(), "NaN has several forms"
    for fact in ("bad_rows", "gap_words", "three_decimals", "equal_decimals", "findings"):
        assert getattr(actual, fact) == getattr(expected, fact), fact
    assert actual.dialect == expected.dialect


def lines(*values: str, repeat: int = 12) -> str:
    """A column that repeats the first value and ends with the others, beside a numeric one."""
    body = [values[0]] * repeat + list(values[1:])
    return "a,y\n" + "".join(f"{value},{row}\n" for row, value in enumerate(body))


def decimal_commas(*values: str) -> str:
    """Such a column in a file whose numbers have decimal commas."""
    body = [values[0]] * 12 + list(values[1:])
    return "a;y\n" + "".join(f"{value};{row},5\n" for row, value in enumerate(body))


FILES = {
    "whole numbers": lines("1", "-5", "9223372036854775807"),
    "whole numbers with gaps": lines("9007199254740992", "", "2", "NA"),
    "whole numbers that no float has, with gaps": lines("9007199254740993", "", "2", "NA"),
    "long whole numbers, and a gap at the end": lines("-9007199254740993", "2", "NA"),
    "numbers after whole ones": lines("1", "2.5", "3e-05", "inf"),
    "words for missing numbers": lines("1.5", "NA", "nan", "-nan", "", "-2"),
    "numbers that are NaN": lines("1.5", "NAN", "2"),
    "texts after numbers": lines("1.5", "x", "-"),
    "texts after whole numbers": lines("1", "x"),
    "postal codes": lines("12345", "01234"),
    "signed numbers with a zero": lines("5", "-05"),
    "numbers with a blank and a zero": lines("5", " 05"),
    "a zero after a number": lines("0.5", "100.005", "1e-05", "0", "-0.5"),
    "nothing at first": lines("", "", "3"),
    "nothing at first, then texts": lines("NA", "word"),
    "nothing at all": lines("", "NA"),
    "blanks": lines(" 1 ", "2 "),
    "words with blanks": lines(" one", "two ", " NA "),
    "moments": lines("2026-01-05 07:30", "2026-01-06 08:30"),
    "dates with points": lines("05.01.2026", "06.01.2026"),
    "truth values": lines("true", "false", ""),
    "long rows": lines("x" * 55, "y" * 58),
    "empty lines": "a,y\n" + "1,2\n\n" * 30,
    "windows": lines("1", "2.5", "").replace("\n", "\r\n"),
    "a delimiter at the ends": "a,y\n" + "1,2,\n" * 30,
    "no line end at the end": lines("1", "2").rstrip("\n"),
    "plus signs": lines("1", "+7"),
    "hexadecimal numbers": lines("1", "", "0x1F"),
    "hexadecimal numbers with a sign": lines("1", "-0X1f"),
    "hexadecimal numbers behind blanks": lines("1", " 0x1F"),
    "a missing number with blanks": lines("1", " NA "),
    "quotes": lines('"x, y"', "z"),
    "quotes later": lines("x", '"one\ntwo"'),
    "decimal commas": decimal_commas("1,5"),
    "latin-1": lines("caf\xe9"),
    "latin-1 later": lines("cafe", "caf\xe9"),
    "old line ends": lines("1", "2").replace("\n", "\r"),
    "a long row": lines("x", "y" * 500),
    "plus signs before other numbers": lines("1", "+7", "2.5"),
    "negative zeros": lines("-0", "1"),
    "negative zeros before other numbers": lines("-0", "1", "2.5"),
    "negative zeros behind other numbers": lines("2.5", "-0"),
    "negative zeros and a gap": lines("1", "-0", ""),
    "negative zeros behind a gap": lines("", "1", "-0"),
    "whole numbers that no float has, then others": lines("9007199254740993", "", "2.5"),
    "three decimals": lines("1.234", "2.345", "7"),
    "three decimals, then two": lines("1.234", "2.34"),
    "different decimals that are one float": lines("0.12345678901234567891", "0.12345678901234567892"),
    "a word for a gap before numbers": lines("NA", "1.5", "None"),
    "quoted gaps": lines('"NA"', '""', '"1.5"'),
    "one decimal comma in each number": decimal_commas("1,234", "2,345"),
    "decimal commas after one in each": decimal_commas("1,234", "2,5"),
    "points between thousands": decimal_commas("1.234.567", "2"),
    "points between thousands, then infinity": decimal_commas("1.234.567,5", "inf"),
    "decimal points among decimal commas": decimal_commas("1.5", "2"),
}


@pytest.mark.parametrize("block_bytes", [64, 512])
@pytest.mark.parametrize("text", FILES.values(), ids=FILES)
def test_the_columns_do_not_depend_on_the_sizes_of_the_parts(
    tmp_path: Path, spill: Spill, monkeypatch: pytest.MonkeyPatch, text: str, block_bytes: int
) -> None:
    monkeypatch.setattr(csv_reader, "BLOCK_BYTES", block_bytes)
    path = tmp_path / "data.csv"
    path.write_bytes(text.encode("latin-1"))
    assert_same(read_csv(path, spill=spill), read_csv(path))


@pytest.mark.parametrize("text", FILES.values(), ids=FILES)
def test_wide_tables_have_the_columns_of_others(
    tmp_path: Path, spill: Spill, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setattr(tables, "MAX_OPEN_COLUMNS", 1)
    path = tmp_path / "data.csv"
    path.write_bytes(text.encode("latin-1"))
    assert_same(read_csv(path, spill=spill), read_csv(path))


def test_numbers_stay_texts_where_a_person_has_stated_their_rule(tmp_path: Path, spill: Spill) -> None:
    path = Path(csv_file(tmp_path, lines("1.234", "-999", "", "2.5")))
    expected = read_csv(path, texts=["a"])
    assert expected.columns["a"].tolist()[-4:] == ["1.234", "-999", "", "2.5"]
    assert_same(read_csv(path, spill=spill, texts=["a"]), expected)


@pytest.mark.parametrize("text", [lines("1", "99999999999999999999"), lines("99999999999999999999", "1")])
def test_whole_numbers_above_64_bits_are_texts_in_large_files_too(
    tmp_path: Path, spill: Spill, text: str
) -> None:
    path = Path(csv_file(tmp_path, text))
    assert_same(read_csv(path, spill=spill), read_csv(path))
    assert "99999999999999999999" in read_csv(path).columns["a"].tolist()


def test_a_damaged_row_of_a_large_file_is_named_or_left_out(tmp_path: Path, spill: Spill) -> None:
    path = Path(csv_file(tmp_path, "a,y\n" + "1,2\n" * 200 + "1,2,3\n" + "3,4\n" * 200))
    with pytest.raises(BadData, match=r"line 202 of data\.csv has 3 fields instead of 2"):
        read_csv(path, spill=spill)
    bad = BadRows(0.5)
    table = read_csv(path, spill=spill, bad=bad)
    assert_same(table, read_csv(path, bad=BadRows(0.5)))
    assert [row[0] for row in bad.rows] == [202]


def test_a_large_csv_file_is_refused_as_soon_as_its_columns_are_too_large(
    tmp_path: Path, spill: Spill
) -> None:
    path = Path(csv_file(tmp_path, "a,y\n" + "1,2\n" * 5000))
    with pytest.raises(BadData, match="expands to"):
        read_csv(path, FileLimits(expanded_bytes=50_000), spill=spill)


def test_a_long_text_of_a_large_file_is_named_with_its_row(tmp_path: Path, spill: Spill) -> None:
    path = Path(csv_file(tmp_path, lines("x", "y" * 50)))
    with pytest.raises(BadData, match="50 characters in row 13"):
        read_csv(path, FileLimits(text_characters=20), spill=spill)


def test_random_tables_are_read_in_parts_as_at_once(tmp_path: Path, spill: Spill) -> None:
    rng = np.random.default_rng(0)
    fields = ["", "NA", "0", "7", "-3", "007", "2.5", "1e-07", " 4", "x", "true", "2026-01-05", "0x1F", "nan"]
    for number in range(60):
        chosen = [rng.choice(fields, size=rng.integers(1, 5)) for _ in range(3)]
        rows = [",".join(str(rng.choice(column)) for column in chosen) for _ in range(40)]
        path = Path(csv_file(tmp_path, "a,b,c\n" + "\n".join(rows) + "\n"))
        folder = spill.folder / str(number)
        folder.mkdir()
        assert_same(read_csv(path, spill=Spill(folder, 2, 1)), read_csv(path))
