"""Tables as programs, databases and other scripts write them: gaps, digits, sentinels and chosen types."""

import io
from typing import Any

import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
from openpyxl.worksheet.worksheet import Worksheet

from jobs.spec.data.columns import ColumnRequest, ColumnType
from jobs.spec.data.number_format import NumberFormat
from tests.engine.data.collection.case import ExpectedColumn, TableCase, csv_rows
from tests.engine.data.collection.contents import workbook
from tests.engine.data.collection.date_columns import NIGHT, column_case
from tests.engine.data.collection.gaps import colours
from tests.engine.data.collection.numbers import numbers_of


def chosen(name: str, texts: list[str], *values: object, **request: object) -> TableCase:
    """Return a case of a column for which a person chose a type or gap words."""
    asked = ColumnRequest.model_validate({"name": "x", **request})
    rows = [f'"{text}",{number % 3},{number % 2}' for number, text in enumerate(texts)]
    missing = sum(value is None for value in values)
    expected = ExpectedColumn(asked.type or "number", missing=missing, values=values)
    return TableCase(name, csv_rows("x,z,y", *rows), {"x": expected}, requests=(asked,))


GAPS = (
    colours("mysql.csv", ["red", r"\N", "blue"], "red", None, "blue", findings=(r"'\\N' in 1 of 3 rows",)),
    colours("oracle.csv", ["red", "(null)", "blue"], "red", None, "blue", findings=("'(null)' in 1",)),
    colours("pivot.csv", ["red", "(blank)", "blue"], "red", "(blank)", "blue", findings=("'(blank)' in 1",)),
    numbers_of("mysql_numbers.csv", ["1.5", r"\N", "2.5"], 1.5, None, 2.5, absent=(r"\N",)),
    numbers_of("windows_c.csv", ["1.5", "-1.#IND", "1.#QNAN", "2.5"], 1.5, None, None, 2.5),
    column_case(
        "pandas_dates", ["2021-12-24", "NaT", "2021-12-25"], ["2021-12-24", None, "2021-12-25"], missing=1
    ),
)
DIGITS = (
    numbers_of("arabic_digits.csv", ["٣٤", "١٬٢٣٤٫٥", "٥٫٥"], 34.0, 1234.5, 5.5),
    numbers_of("devanagari_digits.csv", ["१२", "३४", "५.२५"], 12.0, 34.0, 5.25),
    numbers_of("wide_digits.csv", ["１２", "３４", "－５．５"], 12.0, 34.0, -5.5),
    numbers_of("letters_without_width.csv", ["5\u200b", "\ufeff6", "7.5"], 5.0, 6.0, 7.5),
    column_case("arabic_dates", ["٢٤/١٢/٢٠٢١", "٢٥/١٢/٢٠٢١"], ["2021-12-24", "2021-12-25"]),
    column_case("wide_dates", ["２０２１/１２/２４", "２０２１-１２-２５"], ["2021-12-24", "2021-12-25"]),
)
DATES = (
    column_case(
        "short_years_with_times", ["Dec 24 21 15:05", "Dec 25 21"], ["2021-12-24T15:05", "2021-12-25"]
    ),
    column_case(
        "sas_short_years", ["24DEC21:15:05:00", "25DEC21:00:00:00"], ["2021-12-24T15:05", "2021-12-25"]
    ),
    column_case(
        "dates_that_never_end",
        ["2021-12-24", "9999-12-31", "2022-01-03", "9999-12-31"],
        ["2021-12-24", "9999-12-31", "2022-01-03", "9999-12-31"],
        findings=("9999-12-31 in 2 of 4 rows is more than 7,977 years away from all other dates",),
        offers=(("d", {"gap_words": ["9999-12-31"]}),),
    ),
    column_case(
        "dates_that_never_end_taken_as_missing",
        ["24.12.2021", "31.12.9999", "n/a", "31.12.9999 00:00"],
        ["2021-12-24", None, None, None],
        missing=3,
        requests=(ColumnRequest(name="d", gap_words=("9999-12-31",)),),
        absent=("years away",),
    ),
    column_case("dates_of_births", ["1900-01-01", "1931-05-05", "2001-07-07"], absent=("years away",)),
    column_case(
        "buddhist_years",
        ["24/12/2564", "25/12/2564"],
        ["2564-12-24", "2564-12-25"],
        findings=("no date before 2564-12-24", "543"),
    ),
)
ZONES = (
    column_case(
        "times_of_which_some_have_a_zone",
        ["2021-12-24T16:05:00+01:00", "2021-12-24 15:05", "2021-12-24T15:05:00Z", "2021-12-24"],
        [NIGHT, NIGHT, NIGHT, "2021-12-24"],
        findings=("1 of 3 times has no time zone and is read as UTC, while the others have one",),
    ),
    column_case(
        "times_that_all_have_a_zone",
        ["12/24/2021 4:05 PM +0100", "12/24/2021 3:05 PM GMT"],
        [NIGHT, NIGHT],
        absent=("time zone",),
    ),
    column_case("times_without_zones", ["2021-12-24 15:05", "2021-12-24"], absent=("time zone",)),
)
MONTHS = (
    column_case("russian", ["24 декабря 2021", "25 дек 2021"], ["2021-12-24", "2021-12-25"]),
    column_case("polish", ["24 grudnia 2021", "3 lutego 2021"], ["2021-12-24", "2021-02-03"]),
    column_case("turkish", ["24 Aralık 2021", "3 Şubat 2021"], ["2021-12-24", "2021-02-03"]),
    column_case("swedish", ["24 maj 2021", "3 augusti 2021"], ["2021-05-24", "2021-08-03"]),
    column_case(
        "short_german", ["4.7.21", "12.4.21", "31.12.99"], ["2021-07-04", "2021-04-12", "1999-12-31"]
    ),
    column_case(
        "months_of_accounts",
        ["202111", "202112", "202201"],
        ["2021-11-01", "2021-12-01", "2022-01-01"],
        column="period",
        offers=(("period", {"type": "integer"}),),
    ),
    column_case(
        "numbers_that_could_be_months",
        ["202111", "202112", "202205"],
        kind="integer",
        column="code",
        offers=(("code", {"type": "date", "date_format": "%Y%m"}),),
    ),
    column_case(
        "no_date_of_mainframes",
        ["20211224", "0", "99999999", "20211225", "20211226", "20211227", "20211228"],
        ["2021-12-24", None, None, "2021-12-25", "2021-12-26", "2021-12-27", "2021-12-28"],
        column="date",
        missing=2,
        findings=("row 2 has '00000000'",),
    ),
)
READ_AS_WORDS = tuple(
    column_case(name, texts, kind="category", findings=(f"values such as {texts[0]!r} are {what}",))
    for name, what, *texts in (
        ("durations", "times or durations", "01:23:45", "123:05:10.5"),
        ("short_durations", "times or durations", "5:10", "12:30"),
        ("durations_of_iso", "times or durations", "PT1H30M", "P1DT5S"),
        ("durations_of_pandas", "times or durations", "0 days 01:23:45", "1 days 00:00:00"),
        ("durations_in_words", "times or durations", "1h 30m", "2h 5m"),
        ("hungarian", "dates with names of months", "2021. december 24.", "2021. január 3."),
        ("hindi", "dates with names of months", "12 जनवरी 2021", "3 फ़रवरी 2021"),
        ("log_dates", "dates without a year", "Dec 24 15:05:00", "Dec  4 15:06:00"),
        ("japanese_years", "dates of another calendar", "令和3年12月24日", "令和3年12月25日"),
        ("fiscal_quarters", "periods", "FY21 Q1", "FY21 Q2"),
        ("half_years", "periods", "2021H1", "2021H2"),
        ("hexadecimal", "hexadecimal numbers", "0x1F", "0xA0"),
        ("fortran", "numbers with the exponent of Fortran", "1.5D+03", "2.0D-01"),
        ("brackets_of_logs", "dates between brackets", *(f"[24/Dec/2021:15:05:0{n} +0100]" for n in (1, 2))),
        ("errors_of_measurement", "numbers with a range or an error", "5±0.1", "6 ± 0.2", "7 [6.5-7.5]"),
        ("blood_pressures", "numbers with a slash", "120/80", "130/85"),
        ("coordinates", "geographic degrees", "12°34'N", "13.5S"),
        ("formulas", "formulas of spreadsheets", "=5", "=7.5"),
        ("feet_and_inches", "lengths in feet and inches", "5' 10", "6' 1"),
        ("dot_net", "dates of .NET", "/Date(1600000000000)/", "/Date(1600086400000)/"),
    )
)
CHOSEN = (
    chosen("decimals_as_words.csv", ["1.50", "2.25", "3.00"], "1.5", "2.25", "3", type="category"),
    chosen("exponents_as_words.csv", ["1e5", "+2", "-0"], "100000", "2", "0", type="category"),
    chosen("digits_as_words.csv", [str(2**60 + 1), "5", "+6"], str(2**60 + 1), "5", "6", type="category"),
    chosen("numbers_with_a_gap_as_words.csv", ["1.0", "", "NA"], "1", None, None, type="category"),
    chosen("infinities_as_words.csv", ["inf", "1.50", "2"], None, "1.5", "2", type="category"),
    chosen("decimals_as_text.csv", ["1.50", "2.25", "3.00"], "1.5", "2.25", "3", type="text"),
    chosen("ones_and_zeros.csv", ["1", "0", ""], 1.0, 0.0, None, type="boolean"),
    chosen("sentinels_with_commas.csv", ["1,5", "-99,0", "2,25"], 1.5, None, 2.25, gap_words=("-99",)),
)
LARGE = (
    TableCase(
        "seconds_since_1970.csv",
        csv_rows("x,z,y", *(f"{1_600_000_000 + 7 * row},{row % 3},{row % 2}" for row in range(20))),
        {"x": ExpectedColumn("integer")},
        findings=("Column 'x': 20 different numbers are only 2 as the 32-bit floats", "such as 1600000000"),
    ),
    TableCase(
        "days_in_seconds.csv",
        csv_rows("x,z,y", *(f"{1_600_000_000 + 86_400 * row},{row % 3},{row % 2}" for row in range(20))),
        absent=("32-bit",),
    ),
    TableCase(
        "large_classes.csv",
        csv_rows("x,y", *(f"{row}.5,{10**10 + row % 2}" for row in range(20))),
        absent=("32-bit",),
    ),
    TableCase(
        "infinities.csv",
        csv_rows("x,z,y", "inf,1,0", "1.5,2,1", "-Infinity,1,0", "1e39,2,1"),
        {"x": ExpectedColumn("number", "feature")},
        findings=("Column 'x': 3 numbers are infinite or beyond the range of 32-bit floats",),
    ),
)


def parquet_of(values: pa.Array) -> bytes:
    """Return a Parquet file with a column `x`, another one, and a class."""
    file = io.BytesIO()
    rows = range(len(values))
    pq.write_table(
        pa.table({"x": values, "z": [row + 0.5 for row in rows], "y": [row % 2 for row in rows]}), file
    )
    return file.getvalue()


def bytes_case(
    name: str, values: pa.Array, *expected: object, kind: ColumnType = "category", **more: Any
) -> TableCase:
    """Return a case of a Parquet column."""
    column = ExpectedColumn(kind, "feature", sum(value is None for value in expected), expected)
    return TableCase(name, parquet_of(values), {"x": column}, source="parquet", **more)


BYTES = (
    bytes_case("texts_as_bytes.parquet", pa.array([b"ab", None, b"cd", b"ab"]), "ab", None, "cd", "ab"),
    bytes_case(
        "texts_of_one_length.parquet", pa.array([b"ab", b"cd", b"ab"], pa.binary(2)), "ab", "cd", "ab"
    ),
    bytes_case("numbers_as_bytes.parquet", pa.array([b"1.5", b"2.5"]), 1.5, 2.5, kind="number"),
    bytes_case("bytes_that_are_no_texts.parquet", pa.array([b"\xff\xfe", b"a", b"a"]), "fffe", "61", "61"),
    bytes_case(
        "durations.parquet",
        pa.array([5_400_000, None, 1_500], pa.duration("ms")),
        *(5400.0, None, 1.5),
        kind="number",
        findings=("Column 'x' has durations, which are read as numbers of seconds.",),
    ),
)


def merged(*areas: str) -> bytes:
    """Return a workbook with a title over its columns, and with cells that are merged."""
    book = openpyxl.load_workbook(io.BytesIO(workbook(["Sales"], HEADER, *REGIONS)))
    sheet = book.active
    assert isinstance(sheet, Worksheet)
    for area in ("A1:C1", *areas):
        sheet.merge_cells(area)
    target = io.BytesIO()
    book.save(target)
    return target.getvalue()


HEADER = ["x", "z", "y"]
NORTH: list[list[Any]] = [["north", 1.5, 0], [None, 2.5, 1], [None, 3.5, 0]]
REGIONS = [*NORTH, ["south", 1.5, 1], [None, 1.5, 0]]
WORKBOOKS = (
    TableCase(
        "merged_cells.xlsx",
        merged("A3:A5"),
        {"x": ExpectedColumn("category", missing=1, values=("north", "north", "north", "south", None))},
        source=None,
        findings=("2 rows got the value of a cell that is merged over several rows, as 'north' in row 4",),
    ),
    TableCase(
        "long_ids.xlsx",
        workbook(HEADER, *[[10**18 + row, row % 3, row % 2] for row in range(10)]),
        source=None,
        findings=("10 cells have numbers of more than 15 digits",),
    ),
)
OTHERS = (
    TableCase(
        "rows_as_arrays.jsonl",
        b'["x","y"]\n[1,"a"]\n[2,"b"]\n\n[3,"a"]\n',
        {"x": ExpectedColumn("integer", values=(1, 2, 3)), "y": ExpectedColumn("category", "target")},
        source=None,
    ),
    TableCase(
        "key_given_twice.jsonl", b'{"x": 1, "x": 2, "y": 1}\n' * 2, source=None, refusal="the key 'x' twice"
    ),
    TableCase(
        "text_like_a_key.jsonl",
        b'{"x": "a\\": b\\":", "y": 1}\n{"x": "c", "y": 0}\n',
        {"x": ExpectedColumn("category", values=('a": b":', "c"))},
        source=None,
    ),
    TableCase(
        "nested.jsonl",
        b'{"x": {"u": 1}, "y": 1}\n{"x": {"u": 2}, "y": 0}\n',
        source=None,
        refusal="pandas.json_normalize",
    ),
    TableCase(
        "nested.json",
        b'[{"x": {"u": 1}, "y": 1}, {"x": {"u": 2}, "y": 0}]',
        source=None,
        refusal="nested.json is no table: line 1 has a nested list or an object as 'x' (make columns of its "
        "values, as by pandas.json_normalize)",
    ),
    TableCase(
        "eurostat.tsv",
        b"geo\t2020\ty\nAT\t: \t1\nBE\t2.5 b\t0\nBG\t3 b\t1\n",
        {"2020": ExpectedColumn("number", missing=1, values=(None, 2.5, 3.0))},
    ),
    TableCase(
        "mysql.dump", b"-- MySQL\nINSERT INTO `t` VALUES (1,2);\n", source=None, refusal="an SQL script"
    ),
    TableCase("utf_32.csv", "a,y\n1,0\n".encode("utf-32"), source=None, refusal="save it as UTF-8"),
    TableCase(
        "two_marks.csv",
        b"\xef\xbb\xbf\xef\xbb\xbf" + csv_rows("x,y", "1,0", "2,1", "3,0"),
        {"x": ExpectedColumn("number")},
        requests=(ColumnRequest(name="\ufeffx", type="number"),),
    ),
    TableCase(
        "two_marks_and_a_format.csv",
        b"\xef\xbb\xbf\xef\xbb\xbf" + csv_rows("x,y", "1.234,0", "2.345,1", "3.456,0"),
        {"x": ExpectedColumn("number", values=(1234.0, 2345.0, 3456.0))},
        requests=(ColumnRequest(name="\ufeffx", number_format=NumberFormat(decimal=",", thousands=".")),),
    ),
)
CASES: tuple[TableCase, ...] = (
    *(*GAPS, *DIGITS, *DATES, *ZONES, *MONTHS),
    *(*READ_AS_WORDS, *CHOSEN, *LARGE, *BYTES, *WORKBOOKS, *OTHERS),
)
