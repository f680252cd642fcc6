"""Numbers with endings that multiply them, and points that divide thousands or precede decimals."""

from jobs.spec.data.columns import ColumnRequest
from jobs.spec.data.number_format import NumberFormat
from tests.engine.data.collection.case import ExpectedColumn, TableCase, csv_rows
from tests.engine.data.collection.numbers import column_of, numbers_of

POINTS = NumberFormat(decimal=",", thousands=".")


def format_of(**fields: object) -> dict[str, object]:
    return {"number_format": NumberFormat.model_validate(fields).model_dump()}


MAGNITUDES = (
    column_of(
        "thousands_with_k.csv",
        ["45k", "52000", "60K"],
        columns={"x": ExpectedColumn("number", values=(45000.0, 52000.0, 60000.0))},
        findings=(
            "2 of 3 numbers are written with 'k' or 'K', which multiplies them: '45k' is read as 45000",
        ),
        offers=(("x", {"type": "category"}),),
    ),
    column_of(
        "followers.csv",
        ["850", "1.2K", "12K", "999"],
        columns={"x": ExpectedColumn("number", values=(850.0, 1200.0, 12000.0, 999.0))},
        findings=("2 of 4 numbers are written with 'K', which multiplies them: '1.2K' is read as 1200",),
        offers=(("x", format_of(unit="K")), ("x", {"type": "category"})),
    ),
    column_of(
        "inhabitants.csv",
        ["600000", "1.5M", "900000"],
        columns={"x": ExpectedColumn("number", values=(600000.0, 1500000.0, 900000.0))},
        offers=(("x", format_of(unit="M")),),
    ),
    column_of(
        "several_magnitudes.csv",
        ["2M", "750K", "1.1B", "3 bn"],
        columns={"x": ExpectedColumn("number", values=(2e6, 750e3, 1.1e9, 3e9))},
        findings=("4 of 4 numbers are written with",),
        absent=("several units", "the others without"),
    ),
    column_of(
        "magnitudes_and_currencies.csv",
        ["$1.2M", "$850", "$45k"],
        columns={"x": ExpectedColumn("number", values=(1.2e6, 850.0, 45e3))},
    ),
    column_of(
        "thousands_of_euros.csv",
        ["12 k€", "12,5 k€", "900 €", "1,5 Mio. €"],
        columns={"x": ExpectedColumn("number", values=(12e3, 12.5e3, 900.0, 1.5e6))},
    ),
    column_of(
        "thousands_of_euros_by_code.csv",
        ["12 kEUR", "900 EUR", "3 kEUR"],
        columns={"x": ExpectedColumn("number", values=(12e3, 900.0, 3e3))},
    ),
    column_of(
        "magnitudes_and_points.csv",
        ["30000", "52.000", "45k", "76000"],
        columns={"x": ExpectedColumn("number", values=(30000.0, 52000.0, 45000.0, 76000.0))},
        findings=("'45k' is read as 45000", "'52.000' is read as 52000.0"),
    ),
    column_of(
        "only_amounts_with_k.csv",
        ["$80k", "$18k", "$4k"],
        columns={"x": ExpectedColumn("number", values=(80e3, 18e3, 4e3))},
        offers=(("x", format_of(currency="$", unit="k")),),
    ),
    column_of(
        "thousands_of_accountants.csv",
        ["12 T€", "900 €", "3 T€"],
        columns={"x": ExpectedColumn("number", values=(12e3, 900.0, 3e3))},
    ),
    column_of(
        "crores.csv",
        ["₹5 Cr", "₹3 lakh", "₹900"],
        columns={"x": ExpectedColumn("number", values=(5e7, 3e5, 900.0))},
    ),
    column_of(
        "magnitudes_of_other_scripts.csv",
        ["1,5 млн", "300 тыс."],
        columns={"x": ExpectedColumn("number", values=(1.5e6, 3e5))},
    ),
    column_of(
        "decimals_before_k.csv",
        ["1.234k", "500", "2.345k"],
        columns={"x": ExpectedColumn("number", values=(1234.0, 500.0, 2345.0))},
    ),
    column_of(
        "bands_of_prices.csv",
        ["45k", "60k", "500"] * 4,
        columns={"x": ExpectedColumn("category", "target")},
        target="x",
    ),
    column_of(
        "only_thousands.csv",
        ["80k", "18k", "4k"],
        columns={"x": ExpectedColumn("number", values=(80.0, 18.0, 4.0))},
        findings=("'k' is read as a unit, so '80k' is 80; it may multiply the numbers",),
        offers=(("x", {"type": "category"}), ("x", format_of(magnitudes=True))),
    ),
    column_of(
        "metres.csv",
        ["5 m", "6", "7.5 m"],
        columns={"x": ExpectedColumn("number", values=(5.0, 6.0, 7.5))},
        findings=("2 of 3 numbers are written with 'm', and the others without",),
        offers=(("x", format_of(magnitudes=True)),),
    ),
    numbers_of(
        "millions_as_stated.csv",
        ["64 M", "12 M"],
        64e6,
        12e6,
        requests=(ColumnRequest(name="x", number_format=NumberFormat(magnitudes=True)),),
    ),
    column_of(
        "magnitudes_beside_words.csv",
        ["51000", "45k", "not answered", "60k", "47000"],
        columns={"x": ExpectedColumn("number", missing=1, values=(51e3, 45e3, None, 60e3, 47e3))},
        requests=(ColumnRequest(name="x", type="number"),),
        findings=("'45k' is read as 45000",),
    ),
)
SHARES = (
    column_of(
        "percents_beside_shares.csv",
        ["54%", "0.42", "86 %", "1"],
        columns={"x": ExpectedColumn("number", values=(0.54, 0.42, 0.86, 1.0))},
        findings=("the others are from 0 to 1, so '54%' is read as 0.54",),
        offers=(("x", format_of(percent=True)), ("x", {"type": "category"})),
    ),
    column_of(
        "percents_beside_numbers.csv",
        ["54%", "0.42", "12"],
        columns={"x": ExpectedColumn("number", values=(54.0, 0.42, 12.0))},
        findings=("1 of 3 numbers are written with '%', and the others without",),
    ),
    numbers_of("percents_beside_zero.csv", ["54%", "0", "12%"], 54.0, 0.0, 12.0),
)
MARKS = (
    column_of(
        "points_beside_hundreds.csv",
        ["3.421", "658", "4.168"],
        columns={"x": ExpectedColumn("number", values=(3421.0, 658.0, 4168.0))},
        findings=("'3.421' is read as 3421.0",),
        offers=(("x", format_of()),),
    ),
    TableCase(
        "points_beside_hundreds_in_the_target.csv",
        csv_rows("x,price", "0.62,585", "-1.61,292", "0.73,4.598", "0.13,7.938"),
        {"price": ExpectedColumn("number", values=(585.0, 292.0, 4598.0, 7938.0))},
        offers=(("price", format_of()),),
    ),
    TableCase(
        "points_beside_decimal_commas.csv",
        csv_rows("x;price;y", "3.421;1.097,98 €;a", "1.200;833,69 €;b", "12;7,50 €;a"),
        {"x": ExpectedColumn("number", values=(3421.0, 1200.0, 12.0))},
        findings=("'3.421' is read as 3421.0",),
        offers=(("x", format_of()),),
    ),
    column_of(
        "decimals_beside_hundreds.csv",
        ["3.421", "658", "4.16"],
        columns={"x": ExpectedColumn("number", values=(3.421, 658.0, 4.16))},
        absent=("three digits",),
    ),
    column_of(
        "decimals_and_thousands_of_both_kinds.csv",
        ["1.955,16", "3,105.74", "7.927,77", "4,004.50"],
        columns={"x": ExpectedColumn("category")},
        findings=("decimal commas and with decimal points, such as '1.955,16' and '3,105.74'",),
    ),
)
CASES: tuple[TableCase, ...] = (*MAGNITUDES, *SHARES, *MARKS)
