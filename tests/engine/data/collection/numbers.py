"""Numbers with currencies, units, marks of thousands, and columns that are nearly numeric."""

from typing import Any

from jobs.spec.data.columns import ColumnRequest
from jobs.spec.data.number_format import NumberFormat
from tests.engine.data.collection.case import ExpectedColumn, TableCase, csv_rows

DIGITS = [str(number) for number in range(1, 200)]


def column_of(name: str, texts: list[str], **fields: Any) -> TableCase:
    """Return a case whose column `x` has these texts, between quotes."""
    rows = [f'"{text}",{number % 3},{number % 2}' for number, text in enumerate(texts)]
    return TableCase(name, csv_rows("x,z,y", *rows), **fields)


def numbers_of(name: str, texts: list[str], *values: float | None, **fields: Any) -> TableCase:
    """Return a case whose texts are numbers, with no doubt about it."""
    missing = sum(value is None for value in values)
    expected = ExpectedColumn("number", "feature", missing=missing, values=values)
    return column_of(name, texts, columns={"x": expected}, **fields)


def words_of(name: str, texts: list[str], **fields: Any) -> TableCase:
    """Return a case whose texts stay words."""
    return column_of(name, texts, columns={"x": ExpectedColumn("category", values=tuple(texts))}, **fields)


def nearly(name: str, misfit: str, texts: list[str] = DIGITS) -> TableCase:
    """Return a case in which one text, in the last row, is no number."""
    count = len(texts)
    return column_of(
        name,
        [*texts, misfit],
        columns={"x": ExpectedColumn("category", missing=0)},
        findings=(f"Column 'x': {count} of {count + 1} values are numbers; row {count + 1} has {misfit!r}",),
        offers=(("x", {"type": "number"}),),
    )


CURRENCIES = (
    numbers_of("dollars.csv", ["$5,339.33", "$12", "-$1.50", "$-2"], 5339.33, 12.0, -1.5, -2.0),
    numbers_of("euros_before.csv", ["€ 12,50", "€ 1.234,50", "€ 3"], 12.5, 1234.5, 3.0),
    numbers_of("euros_behind.csv", ["1.234,56 €", "3,50 €", "7 €"], 1234.56, 3.5, 7.0),
    numbers_of("codes_before.csv", ["USD 5", "USD 7.5", "USD 1,000"], 5.0, 7.5, 1000.0),
    numbers_of("codes_behind.csv", ["5 CHF", "7.50 CHF", "1'000 CHF"], 5.0, 7.5, 1000.0),
    numbers_of("reais.csv", ["R$ 1.234,56", "R$ 3,50"], 1234.56, 3.5),
    numbers_of("rupees.csv", ["₹12,34,567.50", "₹1,234", "₹12"], 1234567.5, 1234.0, 12.0),
    numbers_of("accountants.csv", ["(252.50)", "1,000.00", "3"], -252.5, 1000.0, 3.0),
    numbers_of("accountants_dollars.csv", ["($252.50)", "$(3.00)", "$4"], -252.5, -3.0, 4.0),
    column_of(
        "sap.csv",
        ["1.234,50-", "12,00", "3.000,00", "7,25 -"],
        columns={"x": ExpectedColumn("number", values=(-1234.5, 12.0, 3000.0, -7.25))},
        findings=("numbers with a minus behind them, such as '1.234,50-', are negative",),
        offers=(("x", {"type": "category"}),),
    ),
    column_of(
        "negative_euros.csv",
        ["5,50- €", "3,50 €", "2 €"],
        columns={"x": ExpectedColumn("number", values=(-5.5, 3.5, 2.0))},
    ),
    column_of(
        "two_decimal_signs.csv",
        ["1,5", "2,25", "1.5", "2.25"],
        columns={"x": ExpectedColumn("category", missing=0)},
        findings=("decimal commas and with decimal points, such as '1,5' and '1.5'",),
    ),
    words_of("addresses_and_numbers.csv", ["10.0.0.1", "10.5", "10.0.0.2"], absent=("decimal",)),
    words_of("grades.csv", ["2-", "1", "3-", "2"]),
    column_of(
        "two_currencies.csv",
        ["5 €", "6 $", "7 €", "8 $"],
        columns={"x": ExpectedColumn("category", missing=0)},
        findings=("several currencies: '€' in 2 and '$' in 2 rows. They are not merged",),
    ),
    column_of(
        "some_without_currency.csv",
        ["$5", "6", "$7"],
        columns={"x": ExpectedColumn("number", values=(5.0, 6.0, 7.0))},
        findings=("2 of 3 numbers are written with '$', and the others without",),
        offers=(("x", {"type": "category"}),),
    ),
)
THOUSANDS_WITH_POINTS = {"number_format": NumberFormat(decimal=",", thousands=".").model_dump()}
THOUSANDS = (
    numbers_of("points.csv", ["1.234.567", "2.345", "12"], 1234567.0, 2345.0, 12.0),
    numbers_of("commas.csv", ["1,234,567", "2,345.5", "12"], 1234567.0, 2345.5, 12.0),
    numbers_of("blanks.csv", ["1 234 567", "2 345,5", "12"], 1234567.0, 2345.5, 12.0),
    numbers_of(
        "thin_blanks.csv", ["1\u202f234", "1\u00a0234\u00a0567", "1\u2009234"], 1234.0, 1234567.0, 1234.0
    ),
    numbers_of("blanks_and_decimals.csv", ["1 000,50", "2 000,10"], 1000.5, 2000.1),
    numbers_of("apostrophes.csv", ["1'234", "1\u2019234\u2019567.5", "12"], 1234.0, 1234567.5, 12.0),
    numbers_of("decimal_commas_between_quotes.csv", ["12,50", "3,4", "0,125"], 12.5, 3.4, 0.125),
    column_of(
        "thousands_or_decimals.csv",
        ["1.234", "2.345", "-3.456"],
        columns={"x": ExpectedColumn("number", values=(1.234, 2.345, -3.456))},
        findings=("Column 'x': all values with a point have three digits behind it",),
        offers=(("x", THOUSANDS_WITH_POINTS),),
    ),
    column_of(
        "thousands_or_decimals_beside_a_word.csv",
        ["1.234", "2.345", "3.456", "len"],
        columns={"x": ExpectedColumn("number", missing=1, values=(1.234, 2.345, 3.456, None))},
        requests=(ColumnRequest(name="x", type="number"),),
        findings=("'1.234' is read as 1.234",),
        offers=(("x", THOUSANDS_WITH_POINTS),),
    ),
    column_of(
        "thousands_or_decimals_behind_a_gap.csv",
        ["n.a.", "1.234", "2.345"],
        columns={"x": ExpectedColumn("number", missing=1, values=(None, 1.234, 2.345))},
        findings=("'1.234' is read as 1.234",),
        absent=("'n.a.' is read as",),
        offers=(("x", THOUSANDS_WITH_POINTS),),
    ),
    column_of(
        "thousands_as_stated.csv",
        ["1.234", "2.300", "3.456"],
        columns={"x": ExpectedColumn("number", values=(1234.0, 2300.0, 3456.0))},
        requests=(ColumnRequest(name="x", number_format=NumberFormat(decimal=",", thousands=".")),),
        absent=("three digits",),
    ),
    column_of(
        "commas_with_three_digits.csv",
        ["1,234", "2,345", "3,456"],
        columns={"x": ExpectedColumn("number", values=(1234.0, 2345.0, 3456.0))},
        findings=("Column 'x': all values with a comma have three digits behind it",),
    ),
    numbers_of(
        "decimals_of_three_digits.csv",
        ["0.125", "1.234", "2.345"],
        0.125,
        1.234,
        2.345,
        absent=("three digits",),
    ),
    numbers_of(
        "commas_beside_whole_numbers.csv", ["1,234", "345", "3,456"], 1234.0, 345.0, 3456.0, absent=("three",)
    ),
    column_of(
        "telephone_numbers.csv",
        ["555 123", "555 124", "555 199"],
        columns={"x": ExpectedColumn("category", missing=0)},
        findings=("values such as '555 123' may be numbers; they are read as words",),
        offers=(("x", {"type": "number"}),),
    ),
    column_of(
        "lists_or_decimals.csv",
        ["1,2", "3,4", "3,6"],
        columns={"x": ExpectedColumn("category", missing=0)},
        offers=(("x", {"type": "number"}),),
    ),
)
FORMS = (
    numbers_of("short_decimals.csv", [".5", "5.", "+5", "-.5"], 0.5, 5.0, 5.0, -0.5),
    numbers_of("signs.csv", ["\u22125", "+7.5", "3", "\uff0d2"], -5.0, 7.5, 3.0, -2.0),
    numbers_of("exponents.csv", ["1e5", "2.5E+3", "7e-2"], 1e5, 2500.0, 0.07),
    numbers_of("percents.csv", ["12%", "7 %", "3.5%"], 12.0, 7.0, 3.5),
    column_of(
        "names_of_networks.csv",
        ["5G", "4G", "3G", "5G"],
        columns={"x": ExpectedColumn("number", values=(5.0, 4.0, 3.0, 5.0))},
        findings=("numbers such as '5G' are read without 'G', as a unit; it may belong to a name",),
        offers=(("x", {"type": "category"}),),
    ),
    numbers_of("kilograms.csv", ["68 kg", "70.5 kg", "71kg"], 68.0, 70.5, 71.0),
    numbers_of("square_metres.csv", ["45 m²", "1,000 m²"], 45.0, 1000.0),
    numbers_of("speeds.csv", ["5 km/h", "7.5 km/h", "n/a"], 5.0, 7.5, None),
    numbers_of("degrees.csv", ["21 °C", "-3.5 °C"], 21.0, -3.5),
    column_of(
        "two_units.csv",
        ["68 kg", "150 lb", "70 kg", "160 lb"],
        columns={"x": ExpectedColumn("category", missing=0)},
        findings=("several units: 'kg' in 2 and 'lb' in 2 rows. They are not merged",),
    ),
    words_of("codes_with_zeros.csv", ["007", "012", "300"]),
    words_of("seats.csv", ["1A", "2B", "3C", "4A"]),
    words_of("addresses.csv", ["10.0.0.1", "10.0.0.2", "1.1.1.1"]),
    words_of("ordinal_numbers.csv", ["1st", "2nd", "3rd", "4th"]),
    words_of("versions.csv", ["1.2.3", "1.10.0", "2.0.1"]),
    words_of("times_of_day.csv", ["10 AM", "11 AM", "9 AM"]),
)
NEARLY = (
    nearly("repeated_header.csv", "len"),
    nearly("excel_division.csv", "#DIV/0!"),
    nearly("excel_reference.csv", "#REF!", [f"{number}.5" for number in range(50)]),
    nearly("excel_value.csv", "#VALUE!"),
    nearly("open_above.csv", "90+"),
    nearly("open_below.csv", "<5"),
    nearly("range.csv", "5-10"),
    nearly("few_rows.csv", "x", ["1", "2", "3", "4"]),
    column_of(
        "one_unknown.csv",
        [*DIGITS, "unknown"],
        columns={"x": ExpectedColumn("number", missing=1)},
        findings=("Column 'x': 'unknown' in 1 of 200 rows counts as a missing number.",),
        offers=(("x", {"type": "category"}),),
    ),
    column_of(
        "misfits_are_missing_on_request.csv",
        ["1", "len", "3.5", "90+", "5"],
        columns={"x": ExpectedColumn("number", "feature", missing=2, values=(1.0, None, 3.5, None, 5.0))},
        requests=(ColumnRequest(name="x", type="number"),),
        findings=("Column 'x': 2 of 5 values are no numbers and count as missing; row 2 has 'len'.",),
    ),
    column_of(
        "still_nearly_numeric.csv",
        [*DIGITS, "len"],
        columns={"x": ExpectedColumn("category", "feature", missing=0)},
        requests=(ColumnRequest(name="x", role="feature", type="category"),),
        offers=(("x", {"type": "number"}),),
    ),
    column_of(
        "ignored_by_a_person.csv",
        [*DIGITS, "len"],
        columns={"x": ExpectedColumn("category", "ignore", missing=0)},
        requests=(ColumnRequest(name="x", role="ignore"),),
        absent=("'len'",),
    ),
    column_of(
        "numbers_as_words_on_request.csv",
        ["$5", "$6", "$7"],
        columns={"x": ExpectedColumn("category", values=("$5", "$6", "$7"))},
        requests=(ColumnRequest(name="x", type="category"),),
        absent=("$",),
    ),
    column_of(
        "no_numbers_on_request.csv",
        ["red", "blue", "green"],
        requests=(ColumnRequest(name="x", type="number"),),
        refusal="no value is a number, row 1 has red",
    ),
    column_of(
        "one_unit_on_request.csv",
        ["68 kg", "150 lb", "70 kg", "71 kg"],
        columns={"x": ExpectedColumn("number", missing=1, values=(68.0, None, 70.0, 71.0))},
        requests=(ColumnRequest(name="x", type="number"),),
    ),
    column_of(
        "sentinels.csv",
        ["1.5", "-999", "2.5"],
        columns={"x": ExpectedColumn("number", missing=1, values=(1.5, None, 2.5))},
        requests=(ColumnRequest(name="x", gap_words=("-999",)),),
    ),
    column_of(
        "long_integers_on_request.csv",
        ["9,223,372,036,854,775,001", "9,223,372,036,854,775,002", "1"],
        requests=(ColumnRequest(name="x", type="integer"),),
        refusal="so different ones would become the same; choose the type category",
    ),
    column_of(
        "sentinels_in_two_writings.csv",
        ["1.5", "-999", " -999.0", "2.5"],
        columns={"x": ExpectedColumn("number", missing=2, values=(1.5, None, None, 2.5))},
        requests=(ColumnRequest(name="x", gap_words=(" -999 ",)),),
    ),
    column_of(
        "sentinels_with_a_unit.csv",
        ["1.5 kg", "-999", "-999 kg", "2.5 kg"],
        columns={"x": ExpectedColumn("number", missing=2, values=(1.5, None, None, 2.5))},
        requests=(ColumnRequest(name="x", gap_words=("-999",)),),
    ),
)
OTHER_FORMATS = (
    TableCase(
        "whole_numbers_with_three_decimals.csv",
        csv_rows("x,z,y", "10.000,1,0", "25.000,2,1", "30.000,1,0", "7.000,2,1"),
        {"x": ExpectedColumn("number", missing=0, values=(10.0, 25.0, 30.0, 7.0))},
        findings=("'10.000' is read as 10.0",),
        offers=(("x", {"number_format": NumberFormat(decimal=",", thousands=".").model_dump()}),),
    ),
    TableCase(
        "dollars.jsonl",
        b'{"x": "$5.50", "y": 0}\n{"x": "$1,000", "y": 1}\n{"y": 0}\n',
        {"x": ExpectedColumn("number", "feature", missing=1, values=(5.5, 1000.0, None))},
        source="json_lines",
    ),
    TableCase(
        "nearly.jsonl",
        b'{"x": 5.5, "y": 0}\n{"x": 7, "y": 1}\n{"x": "len", "y": 0}\n{"x": 8, "y": 0}\n',
        {"x": ExpectedColumn("category", missing=0)},
        offers=(("x", {"type": "number"}),),
        source="json_lines",
    ),
    TableCase(
        "points_in_a_german_file.csv",
        csv_rows("x;z;y", "1.234;1,5;0", "2.345;2,5;1", "12;3,5;0"),
        {"x": ExpectedColumn("number", values=(1234.0, 2345.0, 12.0))},
        absent=("three digits",),
    ),
    TableCase(
        "decimal_points_in_a_german_file.csv",
        csv_rows("x;z;w;y", "1.5;1,5;2,5;0", "2.25;2,5;3,5;1", "12;3,5;4,5;0"),
        {"x": ExpectedColumn("number", values=(1.5, 2.25, 12.0))},
    ),
)
CASES: tuple[TableCase, ...] = (*CURRENCIES, *THOUSANDS, *FORMS, *NEARLY, *OTHER_FORMATS)
