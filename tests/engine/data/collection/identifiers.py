"""Identifiers: columns whose values name their row, and numbers of more digits than 64 bits hold."""

import io
import json
from collections.abc import Sequence
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from jobs.spec.data.columns import ColumnRequest, ColumnRole, ColumnType
from tests.engine.data.collection.case import ExpectedColumn, TableCase, csv_rows

ROWS = 40
LONG = 1234567890123456789
RANDOM = np.random.default_rng(0)
NOISE = [f"{value:.3f}" for value in RANDOM.normal(size=ROWS)]
SHUFFLED = [int(value) for value in RANDOM.permutation(ROWS)]
PRICES = [int(value) for value in RANDOM.permutation(np.unique(RANDOM.integers(10_000, 10**6, 200))[:ROWS])]
IDS = tuple(str(LONG + row) if row != 3 else None for row in range(ROWS))
"""Identifiers of 19 digits, of which one is missing. As floats they are two numbers."""
ID_ROLE, FEATURE_ROLE = {"role": "id"}, {"role": "feature"}


def csv_of(header: str, values: Sequence[object], *, is_sorted: bool = False) -> bytes:
    """Return a CSV file with a column, noise, and a class: in random order, or sorted by class."""
    classes = [row * 2 // ROWS if is_sorted else SHUFFLED[row] % 2 for row in range(ROWS)]
    return csv_rows(
        f"{header},noise,y",
        *(f"{value},{NOISE[row]},{classes[row]}" for row, value in enumerate(values)),
    )


def json_of(values: Sequence[object]) -> bytes:
    """Return JSON Lines with a column `code`, noise, and a class."""
    rows = (
        {"code": value, "noise": float(NOISE[row]), "y": SHUFFLED[row] % 2}
        for row, value in enumerate(values)
    )
    return "".join(f"{json.dumps(row)}\n" for row in rows).encode()


def parquet_of(values: pa.Array) -> bytes:
    """Return a Parquet file with a column `code`, noise, and a class."""
    file = io.BytesIO()
    noise = [float(value) for value in NOISE]
    pq.write_table(pa.table({"code": values, "noise": noise, "y": [row % 2 for row in SHUFFLED]}), file)
    return file.getvalue()


def arrow_of(values: pa.Array) -> bytes:
    """Return an Arrow file with the same columns."""
    written = pq.read_table(io.BytesIO(parquet_of(values)))
    file = io.BytesIO()
    with pa.ipc.new_file(file, written.schema) as writer:
        writer.write_table(written)
    return file.getvalue()


def npz_of(values: np.ndarray) -> bytes:
    """Return an NPZ file with the same columns."""
    file = io.BytesIO()
    np.savez(file, code=values, noise=np.asarray(NOISE, float), y=np.asarray(SHUFFLED) % 2)
    return file.getvalue()


def kept(
    values: Sequence[str | None], missing: int = 0, role: ColumnRole = "id"
) -> dict[str, ExpectedColumn]:
    """Return the expected column `code`: a category with these texts."""
    return {"code": ExpectedColumn("category", role, missing, tuple(values))}


WITH_GAP = [None if text is None else int(text) for text in IDS]
DIGITS_22 = [10**21 + 7 * row + 1 for row in range(ROWS)]
TEXTS_22 = tuple(map(str, DIGITS_22))
UNSIGNED = [2**64 - 1 - row for row in range(ROWS)]
NUMBER_OFFER = ("code", {"type": "number"})

DIGITS = (
    TableCase(
        "long_ids_with_a_gap.csv",
        csv_of("code", ["" if text is None else text for text in IDS]),
        kept(IDS, missing=1),
        offers=(NUMBER_OFFER, ("code", FEATURE_ROLE)),
    ),
    TableCase(
        "long_ids_with_a_gap_as_category.csv",
        csv_of("code", ["NA" if text is None else text for text in IDS]),
        kept(IDS, missing=1, role="feature"),
        requests=(ColumnRequest(name="code", type="category", role="feature"),),
    ),
    TableCase(
        "long_ids_without_a_gap.csv",
        csv_of("code", [LONG + row for row in range(ROWS)]),
        {"code": ExpectedColumn("integer", "id", 0, tuple(LONG + row for row in range(ROWS)))},
    ),
    TableCase(
        "long_ids_that_a_role_lifts_to_numbers.csv",
        csv_of("code", ["" if text is None else text for text in IDS]),
        {"code": ExpectedColumn("number", "feature", 1)},
        requests=(ColumnRequest(name="code", type="number", role="feature"),),
    ),
    TableCase("ids_of_22_digits.csv", csv_of("code", DIGITS_22), kept(TEXTS_22), offers=(NUMBER_OFFER,)),
    TableCase(
        "ids_of_22_digits_with_signs.csv",
        csv_of("code", [f"+{digits}" for digits in TEXTS_22]),
        kept(tuple(f"+{digits}" for digits in TEXTS_22)),
    ),
    TableCase(
        "ids_of_22_digits_as_a_feature.csv",
        csv_of("code", DIGITS_22),
        kept(TEXTS_22, role="feature"),
        requests=(ColumnRequest(name="code", role="feature"),),
    ),
    TableCase(
        "marks_of_thousands_in_long_ids.csv",
        b"code;size;y\n"
        + b"".join(b"1.234.567.890.123.456.789.%03d;7;%d,5\n" % (row, row) for row in range(100, 140)),
        {"code": ExpectedColumn("category", "id")},
    ),
    TableCase("ids_of_22_digits.jsonl", json_of(DIGITS_22), kept(TEXTS_22), source="json_lines"),
    TableCase("long_ids_with_a_gap.jsonl", json_of(WITH_GAP), kept(IDS, missing=1), source="json_lines"),
    TableCase("unsigned_ids.jsonl", json_of(UNSIGNED), kept(tuple(map(str, UNSIGNED))), source="json_lines"),
    TableCase(
        "numbers_of_5000_digits.jsonl",
        b'{"code": %s, "y": 1}\n{"code": 2, "y": 0}\n' % (b"9" * 5000),
        {"y": ExpectedColumn("integer", "target")},
        source="json_lines",
    ),
    TableCase(
        "long_ids_with_a_gap.parquet",
        parquet_of(pa.array(WITH_GAP, pa.int64())),
        kept(IDS, missing=1),
        source="parquet",
        offers=(NUMBER_OFFER,),
    ),
    TableCase("long_ids_as_texts.parquet", parquet_of(pa.array(IDS)), kept(IDS, missing=1), source="parquet"),
    TableCase(
        "unsigned_ids.parquet",
        parquet_of(pa.array(UNSIGNED, pa.uint64())),
        kept(tuple(map(str, UNSIGNED))),
        source="parquet",
    ),
    TableCase(
        "decimal_ids.parquet",
        parquet_of(pa.array([Decimal(value) for value in DIGITS_22], pa.decimal128(38, 0))),
        kept(TEXTS_22),
        source="parquet",
    ),
    TableCase(
        "decimal_ids_with_a_scale.parquet",
        parquet_of(pa.array([None, *map(Decimal, DIGITS_22[1:])], pa.decimal128(38, 2))),
        kept((None, *TEXTS_22[1:]), missing=1),
        source="parquet",
    ),
    TableCase(
        "long_ids_with_a_gap.arrow",
        arrow_of(pa.array(WITH_GAP, pa.int64())),
        kept(IDS, missing=1),
        source="arrow",
    ),
    TableCase(
        "unsigned_ids.npz",
        npz_of(np.asarray(UNSIGNED, np.uint64)),
        kept(tuple(map(str, UNSIGNED))),
        source="npz",
    ),
    TableCase(
        "decimals_that_differ_in_the_19th_digit.csv",
        csv_rows("size,y", *(f"0.123456789012345678{row % 10},{row % 2}" for row in range(ROWS))),
        {"size": ExpectedColumn("number", "feature", 0)},
        findings=("'size' has decimals with more digits than a number of 64 bits holds",),
    ),
    TableCase(
        "decimals_that_differ_in_the_19th_digit.jsonl",
        b"".join(b'{"size": 0.123456789012345678%d, "y": %d}\n' % (row % 10, row % 2) for row in range(ROWS)),
        {"size": ExpectedColumn("number", "feature", 0)},
        findings=("'size' has decimals with more digits",),
        source="json_lines",
    ),
    TableCase(
        "decimals_that_differ_in_the_19th_digit.parquet",
        parquet_of(pa.array([Decimal(f"0.123456789012345678{row % 10}") for row in range(ROWS)])),
        {"code": ExpectedColumn("number", "feature", 0)},
        findings=("'code' has decimals with more digits",),
        source="parquet",
    ),
    TableCase(
        "decimals_as_numpy_writes_them.csv",
        csv_rows(
            "size,y", *(f"{value:.18e},{row % 2}" for row, value in enumerate(RANDOM.normal(size=ROWS)))
        ),
        {"size": ExpectedColumn("number", "feature", 0)},
        absent=("decimals with more digits",),
    ),
    TableCase(
        "hexadecimal_codes.csv",
        csv_of("code", [f"0x{row + 16:X}" for row in range(ROWS)]),
        kept(tuple(f"0x{row + 16:X}" for row in range(ROWS))),
    ),
    TableCase(
        "large_measures_with_a_gap.csv",
        csv_rows("size,y", "1000000000000000000000,0", ",1", "2000000000000000000000,0", "5,1"),
        {"size": ExpectedColumn("number", "feature", 1, (1e21, None, 2e21, 5.0))},
    ),
)


def named(
    header: str,
    values: Sequence[object],
    role: ColumnRole,
    *,
    is_offered: bool = True,
    kind: ColumnType | None = None,
) -> TableCase:
    """Return a case with whole numbers or words, and the role that they must have."""
    kind = kind or ("integer" if all(isinstance(value, int) for value in values) else "category")
    other = FEATURE_ROLE if role == "id" else ID_ROLE
    return TableCase(
        f"{header}.csv",
        csv_of(header, values),
        {header: ExpectedColumn(kind, role)},
        offers=((header, other),) if is_offered else (),
    )


SECONDS = [1_600_000_000 + 61 * row for row in range(ROWS)]
ROLES = (
    named("customerid", [row * 37 + 5 for row in SHUFFLED], "id"),
    named("PID", [526_301_100 + 17 * row * row for row in SHUFFLED], "id"),
    named("Id", range(1, ROWS + 1), "id"),
    named("passenger_id", range(1, ROWS + 1), "id"),
    named("nearly_unique_id", [1, *range(1, ROWS)], "id"),
    named("orderNumber", [90_000 + row * 3 for row in SHUFFLED], "id"),
    named("rows_from_1", range(1, ROWS + 1), "id"),
    named("shuffled_rows", SHUFFLED, "id"),
    named("email", [f"person{row}@example.org" for row in range(ROWS)], "id"),
    named("hash", [f"{row:064x}" for row in range(1, ROWS + 1)], "id"),
    named("uuid", [f"00000000-0000-4000-8000-{row:012d}" for row in range(ROWS)], "id"),
    named("price", PRICES, "feature"),
    named("population", [value * value for value in PRICES], "feature"),
    named("amount_paid", PRICES, "feature"),
    named("visits_in_order", sorted(PRICES), "feature"),
    named("timestamp", SECONDS, "feature", is_offered=False, kind="date"),
    named("year", range(1980, 1980 + ROWS), "feature", is_offered=False),
    named("day_no", range(1, ROWS + 1), "feature", is_offered=False),
    named("week_number", range(1, ROWS + 1), "feature", is_offered=False),
    named("weeknumber", range(1, ROWS + 1), "feature", is_offered=False),
    named("cycleNo", range(1, ROWS + 1), "feature", is_offered=False),
    named("time_key", SECONDS, "feature", is_offered=False, kind="date"),
    named("day_id", range(1, ROWS + 1), "id"),
    named("madrid", PRICES, "feature"),
    named("plasmid", PRICES, "feature"),
    named("sigmoid", PRICES, "feature"),
    named("age", [20 + row % 30 for row in range(ROWS)], "feature", is_offered=False),
    TableCase(
        "unique_decimals.csv",
        csv_of("weight", NOISE[::-1]),
        {"weight": ExpectedColumn("number", "feature")},
        absent=("'weight'",),
    ),
    TableCase(
        "row_numbers_as_the_only_column.csv",
        csv_rows("x,y", *(f"{row},{row * 2.5}" for row in range(ROWS))),
        {"x": ExpectedColumn("integer", "feature")},
        offers=(("x", ID_ROLE),),
    ),
    TableCase(
        "row_numbers_that_a_person_chose.csv",
        csv_of("rows", range(ROWS)),
        {"rows": ExpectedColumn("integer", "feature")},
        requests=(ColumnRequest(name="rows", role="feature"),),
        absent=("identifier",),
    ),
    TableCase(
        "customers_with_several_rows.csv",
        csv_rows("customer_id,size,y", *(f"{row * 31 % 97},{row % 7}.5,{row % 2}" for row in range(400))),
        {"customer_id": ExpectedColumn("integer", "feature")},
        offers=(("customer_id", {"role": "group"}),),
    ),
    TableCase(
        "measures_with_names_like_numbers.csv",
        csv_rows("NO2,house_number,y", *(f"{row * 31 % 97},{row * 7 % 89},{row % 2}" for row in range(400))),
        {"NO2": ExpectedColumn("integer", "feature"), "house_number": ExpectedColumn("integer", "feature")},
        absent=("identifier",),
    ),
    TableCase(
        "addresses_with_several_rows.csv",
        csv_of("mail", [f"person{row % 8}@example.org" for row in range(ROWS)]),
        {"mail": ExpectedColumn("category", "feature")},
        offers=(("mail", {"role": "group"}),),
    ),
)

DAYS = (np.datetime64("2026-01-01") + np.arange(ROWS)).tolist()
ORDER = "follows the order of the rows"
IN_ORDER = (
    TableCase(
        "sorted_by_class_with_a_sequence.csv",
        csv_of("reading", [100 + 7 * row for row in range(ROWS)], is_sorted=True),
        {"reading": ExpectedColumn("integer", "feature")},
        findings=(f"'reading' {ORDER}",),
        offers=(("reading", ID_ROLE),),
    ),
    TableCase(
        "sorted_by_class_with_a_drift.csv",
        csv_of(
            "drift", [f"{row * 0.25 + float(NOISE[row]) * 0.3:.2f}" for row in range(ROWS)], is_sorted=True
        ),
        findings=(f"'drift' {ORDER}",),
    ),
    TableCase(
        "sorted_by_class_with_a_date.csv",
        csv_of("day", DAYS, is_sorted=True),
        findings=(f"'day' {ORDER}",),
        offers=(("day", {"role": "ignore"}),),
    ),
    TableCase(
        "sorted_by_class_with_a_measure.csv",
        csv_of(
            "size", [f"{row * 2 // ROWS + float(NOISE[-row - 1]):.3f}" for row in range(ROWS)], is_sorted=True
        ),
        absent=(ORDER,),
    ),
    TableCase(
        "sorted_by_a_measure.csv",
        csv_of("size", sorted(map(float, NOISE))),
        absent=(ORDER,),
    ),
    TableCase(
        "a_series_with_a_trend.csv",
        csv_rows(
            "day,sales",
            *(f"{DAYS[row]},{row + 5 * float(NOISE[row]):.2f}" for row in range(ROWS)),
        ),
        absent=(ORDER,),
    ),
)

CASES = (*DIGITS, *ROLES, *IN_ORDER)
