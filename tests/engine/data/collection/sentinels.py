"""Numbers in the place of missing values, words for true and false, and codes of several parts."""

import io

import pyarrow as pa
import pyarrow.parquet as pq

from jobs.spec.data.columns import ColumnRequest, ColumnType
from tests.engine.data.collection.case import ExpectedColumn, TableCase, csv_rows
from tests.engine.data.collection.numbers import column_of

AGES = [str(18 + 7 * number % 53) for number in range(40)]
INCOMES = [str(20_000 + 1_733 * number % 61_000) for number in range(40)]


def gap_of(name: str, texts: list[str], *words: str) -> TableCase:
    """Return a case whose column `x` has numbers that are offered as missing values."""
    return column_of(name, texts, offers=(("x", {"gap_words": list(words)}),))


def no_gap_of(name: str, texts: list[str]) -> TableCase:
    """Return a case whose ordinary column `x` has no such offer."""
    return column_of(name, texts, absent=("far from all other numbers", "a number among words"))


SENTINELS = (
    gap_of("ages_of_999.csv", [*AGES, "999", "999"], "999"),
    gap_of("ages_of_minus_1.csv", [*AGES, "-1", "-1"], "-1"),
    gap_of("ratings_of_minus_1.csv", [*"1234512345", "-1", "-1"], "-1"),
    gap_of("ages_of_both.csv", [*AGES, "-1", "-1", "999", "999"], "-1", "999"),
    gap_of("incomes_of_minus_999.csv", [*INCOMES, "-999", "-999"], "-999"),
    gap_of("incomes_of_minus_99.csv", [*INCOMES, "-99", "-99"], "-99"),
    gap_of("temperatures_of_9999.csv", ["19.7", "-5.5", "22.4", "18.3", "9999.0"], "9999"),
    gap_of("codes_of_99.csv", [*"1234512345", "99", "99"], "99"),
    gap_of("ends_of_whole_numbers.csv", ["5", "17", "12", "2147483647"], "2147483647"),
    gap_of("words_of_minus_99.csv", ["18-24", "25-34", "-99", "18-24", "-99", "35-44"], "-99"),
    gap_of("beside_words_for_gaps.csv", [*AGES, "n/a", "-999", "-999"], "n/a", "-999"),
    no_gap_of("percents.csv", [str(number) for number in range(101)]),
    no_gap_of("three_classes.csv", [*"101110"] + ["-1"] * 6),
    no_gap_of("two_classes.csv", [*"1111"] + ["-1"] * 6),
    no_gap_of("differences.csv", [str(number) for number in range(-30, 1000)]),
    no_gap_of("prices_with_nines.csv", ["9.99", "99.99", "49.99", "199.99", "999.99", "649.99", "799.99"]),
    no_gap_of("prices_below_1000.csv", [str(number) for number in range(99, 1000, 100)] * 2),
    column_of(
        "ages_of_999_as_gaps.csv",
        ["18", "999", "35", "999"],
        columns={"x": ExpectedColumn("number", missing=2, values=(18.0, None, 35.0, None))},
        requests=(ColumnRequest(name="x", gap_words=("999",)),),
    ),
)


def boolean_table() -> bytes:
    """Return a Parquet file whose booleans have gaps."""
    file = io.BytesIO()
    table = pa.table({"x": [True, None, False, True], "y": [0, 1, 0, 1]})
    pq.write_table(table, file)
    return file.getvalue()


BOOLEANS = (
    column_of(
        "several_words_for_yes.csv", ["Y", "Yes", "N", "No", "yes"], offers=(("x", {"type": "boolean"}),)
    ),
    column_of("true_and_1.csv", ["TRUE", "True", "1", "0", "false"], offers=(("x", {"type": "boolean"}),)),
    column_of("only_yes_and_no.csv", ["yes", "no", "yes"], absent=("true and false",)),
    column_of("yes_and_maybe.csv", ["Yes", "Y", "No", "maybe"], absent=("true and false",)),
    column_of(
        "yes_as_boolean.csv",
        ["Y", "Yes", "N", "No", "", "1"],
        columns={"x": ExpectedColumn("boolean", missing=1, values=(1.0, 1.0, 0.0, 0.0, None, 1.0))},
        requests=(ColumnRequest(name="x", type="boolean"),),
    ),
    column_of(
        "maybe_as_boolean.csv",
        ["Y", "N", "maybe"],
        requests=(ColumnRequest(name="x", type="boolean"),),
        refusal="column 'x' is not of type boolean: row 3 has maybe",
    ),
    TableCase(
        "booleans_with_gaps.parquet",
        boolean_table(),
        {"x": ExpectedColumn("boolean", "feature", missing=1, values=(1.0, None, 0.0, 1.0))},
        source="parquet",
    ),
)
CARDS = [f"{1000 + number} {2000 + 7 * number} {9999 - number} {3000 + number}" for number in range(60)]
IBANS = [f"DE{10 + number} {1000 + 11 * number} {5000 + number}" for number in range(60)]
PHONES = [f"+1 (555) {100 + 7 * number}-{1000 + 31 * number}" for number in range(60)]
SLASHES = [f"0{200 + 7 * number}/{100000 + 31 * number}" for number in range(60)]
TEXTS = [f"the {number} good and {number * 7} bad" for number in range(60)]


def codes_of(name: str, texts: list[str], reason: str) -> TableCase:
    """Return a case whose codes of several parts identify rows."""
    return TableCase(
        name,
        csv_rows("x,z,y", *(f"{text},{number % 3},{number % 2}" for number, text in enumerate(texts))),
        columns={"x": ExpectedColumn(type_of(texts), "id")},
        findings=(reason,),
        absent=("a range or an error", "a slash"),
        offers=(("x", {"role": "feature"}),),
    )


def type_of(texts: list[str]) -> ColumnType:
    return "text" if texts[0].count(" ") > 1 else "category"


ORDERS = [str(100_000 + 3 * number) for number in range(40)]
IDENTIFIERS = (
    codes_of("cards.csv", [f"{text} " for text in CARDS], f"by codes such as '{CARDS[0]}'"),
    codes_of("ibans.csv", IBANS, f"by codes such as '{IBANS[0]}'"),
    codes_of("telephones.csv", PHONES, "by telephone numbers"),
    codes_of("telephones_with_slash.csv", SLASHES, "by telephone numbers"),
    column_of("sentences_with_numbers.csv", TEXTS, columns={"x": ExpectedColumn("text", "feature")}),
    column_of(
        "numbers_of_orders_as_numbers.csv",
        [*ORDERS, "sum"],
        columns={"x": ExpectedColumn("number", "id", missing=1)},
        requests=(ColumnRequest(name="x", type="number"),),
    ),
    column_of(
        "measures_as_numbers.csv",
        [*(f"{number}.5" for number in range(40)), "sum"],
        columns={"x": ExpectedColumn("number", "feature", missing=1)},
        requests=(ColumnRequest(name="x", type="number"),),
    ),
    TableCase(
        "numbers_of_customers_with_a_gap.csv",
        csv_rows(
            "kundennr,z,y",
            *(f"{order},{order[-1]},{place % 2}" for place, order in enumerate(ORDERS)),
            ",1,0",
        ),
        {"kundennr": ExpectedColumn("number", "id", missing=1)},
        findings=("all of its 40 values differ",),
    ),
    TableCase(
        "whole_numbers_with_a_gap.csv",
        csv_rows(
            "x,z,y", *(f"{order},{order[-1]},{place % 2}" for place, order in enumerate(ORDERS)), ",1,0"
        ),
        {"x": ExpectedColumn("number", "feature", missing=1)},
        offers=(("x", {"role": "id"}),),
    ),
)


def whole_numbers_with_a_gap() -> bytes:
    """Return a Parquet file whose whole numbers fit into int64, but into no float beside a gap."""
    file = io.BytesIO()
    values = [2**60 + 1 + row for row in range(29)]
    pq.write_table(pa.table({"x": [None, *values], "z": [*range(30)], "y": [0, 1] * 15}), file)
    return file.getvalue()


FILES = (
    TableCase(
        "whole_numbers_with_a_gap.parquet",
        whole_numbers_with_a_gap(),
        {"x": ExpectedColumn("category", "id")},
        findings=("which a column of numbers with gaps or other texts does not hold exactly",),
        source="parquet",
    ),
)
CASES: tuple[TableCase, ...] = (*FILES, *SENTINELS, *BOOLEANS, *IDENTIFIERS)
