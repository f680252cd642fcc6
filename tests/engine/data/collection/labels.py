"""Labels of classes, and categories, that differ in their writing only."""

import io
import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from jobs.spec.data.columns import ColumnRequest
from tests.engine.data.collection.case import ExpectedColumn, TableCase, csv_rows

MERGE = {"merge_labels": True}
COMPOSED, DIVIDED = "caf\N{LATIN SMALL LETTER E WITH ACUTE}", "cafe\N{COMBINING ACUTE ACCENT}"


def labels(*values: str, quoted: bool = False) -> bytes:
    """Return a CSV file with a measure and these classes."""
    written = [f'"{value}"' if quoted else value for value in values]
    return csv_rows("size,y", *(f"{row}.5,{value}" for row, value in enumerate(written)))


def json_labels(*values: object) -> bytes:
    """Return JSON Lines with a measure and these classes."""
    return "".join(
        f"{json.dumps({'size': row + 0.5, 'y': value})}\n" for row, value in enumerate(values)
    ).encode()


def parquet_labels(values: Any) -> bytes:
    """Return a Parquet file with a measure and these classes."""
    file = io.BytesIO()
    pq.write_table(pa.table({"size": [row + 0.5 for row in range(len(values))], "y": values}), file)
    return file.getvalue()


def offered(name: str, content: bytes, *findings: str, target: str = "y", **case: Any) -> TableCase:
    """Return a case for which a merge must be offered."""
    return TableCase(name, content, findings=findings, offers=((target, MERGE),), target="y", **case)


def merged(name: str, content: bytes, values: Sequence[object], column: str = "y", **case: Any) -> TableCase:
    """Return a case in which a merge was chosen, and the values that it gives."""
    expected = {column: ExpectedColumn("category", values=tuple(values))}
    requests = (ColumnRequest(name=column, merge_labels=True),)
    offers = ((column, {"merge_labels": False}),)
    return TableCase(name, content, expected, requests=requests, offers=offers, target="y", **case)


CASE = labels("yes", "YES", "no", "yes", "Yes", "no")
ADULT = labels("<=50K", "<=50K.", ">50K", ">50K.", "<=50K", ">50K")
CAFE = (COMPOSED, COMPOSED)
LISTS = json_labels(["a", "B"], ["A"], ["b", "a"])
CITIES = csv_rows("city,size,y", "Oslo,1.5,0", "OSLO,2.5,1", "Rome,3.5,0", "Oslo,4.5,1")

CASES = (
    offered("case.csv", CASE, "'yes' (2 rows: 1, 4), 'YES' (one row: 2), 'Yes' (one row: 5)"),
    merged("case_merged.csv", CASE, ("yes", "yes", "no", "yes", "yes", "no")),
    offered("final_dots.csv", ADULT, "'<=50K' (2 rows: 1, 5), '<=50K.'", "'>50K'"),
    merged("final_dots_merged.csv", ADULT, ("<=50K", "<=50K", ">50K", ">50K", "<=50K", ">50K")),
    TableCase(
        "labels_kept_apart.csv",
        CASE,
        {"y": ExpectedColumn("category", values=("yes", "YES", "no", "yes", "Yes", "no"))},
        requests=(ColumnRequest(name="y", merge_labels=False),),
        absent=("writing",),
    ),
    offered("unicode_forms.csv", labels(COMPOSED, DIVIDED, "tea", "tea"), r"'cafe\u0301' (one row: 2)"),
    merged(
        "unicode_forms_merged.csv",
        labels(COMPOSED, DIVIDED, "tea", COMPOSED),
        (COMPOSED, COMPOSED, "tea", COMPOSED),
    ),
    offered("no_break_spaces.csv", labels("a b", "a\N{NO-BREAK SPACE}b", "c"), r"'a\xa0b'"),
    offered("two_spaces.csv", labels("a b", "a  b", "c"), "'a  b'"),
    offered("letters_without_width.csv", labels("a\N{ZERO WIDTH SPACE}b", "ab", "c"), r"'a\u200bb'"),
    offered("full_width.csv", labels("\N{FULLWIDTH LATIN CAPITAL LETTER A}", "A", "b")),
    offered("numbers_with_a_zero.csv", labels("1", "01", "2", "02"), "'01' (one row: 2)"),
    offered("numbers_among_words.csv", labels("1", "1.0", "many", "2"), "'1.0' (one row: 2)"),
    offered("numbers_among_words.jsonl", json_labels("1", "1.0", "x", "2"), source="json_lines"),
    TableCase(
        "numbers_and_words.jsonl",
        json_labels(1, 1.0, "1", 2.5, "x", True, " x "),
        {"y": ExpectedColumn("category", values=("1", "1", "1", "2.5", "x", "true", "x"))},
        source="json_lines",
        absent=("writing",),
    ),
    offered("case.jsonl", json_labels("yes", "YES", "no"), "'YES' (one row: 2)", source="json_lines"),
    offered("case.parquet", parquet_labels(["yes", "YES", "no"]), "'YES'", source="parquet"),
    offered(
        "case_of_categories.parquet",
        parquet_labels(pa.array(["yes", "YES", "no"]).dictionary_encode()),
        "'YES'",
        source="parquet",
    ),
    offered(
        "lists.jsonl", json_labels(["a", "B"], ["A"], ["b", "a"]), "'a' (2 rows), 'A'", source="json_lines"
    ),
    TableCase(
        "lists_merged.jsonl",
        LISTS,
        {"y": ExpectedColumn("category", values=('["a","B"]', '["a"]', '["B","a"]'))},
        requests=(ColumnRequest(name="y", merge_labels=True),),
        source="json_lines",
    ),
    TableCase(
        "blanks.parquet",
        parquet_labels(["yes ", " yes", "no", "no\t", "\N{NO-BREAK SPACE}no"]),
        {"y": ExpectedColumn("category", values=("yes", "yes", "no", "no", "no"))},
        source="parquet",
        absent=("writing",),
    ),
    TableCase(
        "blanks_in_categories.parquet",
        parquet_labels(pa.array(["yes ", "yes", None, "no"]).dictionary_encode()),
        source="parquet",
        refusal="no value in 1 of 4 rows",
    ),
    TableCase(
        "blanks.jsonl",
        json_labels("yes ", "yes", "no", "no  "),
        {"y": ExpectedColumn("category", values=("yes", "yes", "no", "no"))},
        source="json_lines",
    ),
    TableCase(
        "blanks_in_quotes.csv",
        labels("yes ", "yes", "no", " no", quoted=True),
        {"y": ExpectedColumn("category", values=("yes", "yes", "no", "no"))},
        absent=("writing",),
    ),
    offered("features.csv", CITIES, "categories of column 'city'", target="city"),
    merged("features_merged.csv", CITIES, ("Oslo", "Oslo", "Rome", "Oslo"), "city"),
    TableCase(
        "a_column_without_categories.csv",
        CITIES,
        requests=(ColumnRequest(name="size", merge_labels=True),),
        target="y",
        refusal="column 'size' is of type number, and merge_labels is for categories",
    ),
    TableCase("different_labels.csv", labels("a", "b", "a.b", "1.5", "15"), absent=("writing",)),
    TableCase("equally_frequent.csv", labels("b", "B", "c"), findings=("'B' (one row: 2), 'b'",)),
)
