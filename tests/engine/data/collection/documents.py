"""Workbooks and JSON documents."""

import datetime
import json

import pandas as pd

from tests.engine.data.collection.case import ExpectedColumn
from tests.engine.data.collection.contents import FRAME, PLAIN, READ, case, workbook, zipped

HEADER = ["a", "b", "y"]
WORKBOOKS = (
    case(
        "workbook.xlsx",
        workbook(HEADER, [1, "x", 0], [2, "z", 1], [3, "x", 0]),
        READ,
        file={"format": "Excel workbook", "sheet": "Data"},
    ),
    case("workbook_under_an_old_name.xls", workbook(HEADER, [1, "x", 0], [2, "z", 1], [3, "x", 0]), READ),
    case("text_of_a_web_page.xls", PLAIN.replace(b",", b"\t"), READ),
    case(
        "workbook_with_a_title.xlsx",
        workbook(["Report of 2024"], [], HEADER, [1, "x", 0], [2, "z", 1], [], [3, "x", 0]),
        READ,
        findings=("A line that is no row was left out: 'Report of 2024'",),
        dialect={"skip_lines": 2},
    ),
    case(
        "workbook_that_begins_in_the_second_column.xlsx",
        workbook([None, *HEADER], [None, 1, "x", 0], [None, 2, "z", 1], [None, 3, "x", 0]),
        READ,
    ),
    case(
        "workbook_of_two_sheets.xlsx",
        workbook(HEADER, [1, "x", 0], [2, "z", 1], [3, "x", 0], other=[["no"]]),
        READ,
        findings=("The workbook has 2 sheets; 'Data' was read, and not 'Other'",),
    ),
    case(
        "workbook_whose_first_sheet_is_empty.xlsx",
        workbook(other=[HEADER, [1, "x", 0], [2, "z", 1], [3, "x", 0]]),
        READ,
    ),
    case(
        "workbook_whose_first_sheet_is_a_note.xlsx",
        workbook(["Read me"], [], ["Data of 2024"], other=[HEADER, [1, "x", 0], [2, "z", 1], [3, "x", 0]]),
        READ,
        findings=("The workbook has 2 sheets; 'Other' was read, and not 'Data'",),
        file={"format": "Excel workbook", "sheet": "Other"},
    ),
    case(
        "workbook_of_notes.xlsx",
        workbook(["Read me"], other=[["Notes"]]),
        refusal="the sheet 'Data' was read: the file has no rows. The workbook has 2 sheets; 'Data' was read",
    ),
    case(
        "types_of_cells.xlsx",
        workbook(
            ["day", "at", "ok", "rate", "code", "y"],
            [datetime.date(2024, 1, 5), datetime.datetime(2024, 1, 5, 10, 30), True, 0.25, "007", 0],
            [datetime.date(2024, 2, 5), datetime.datetime(2024, 1, 6), False, "#DIV/0!", "010", 1],
            [None, datetime.datetime(2024, 1, 7, 8), True, 3, "011", 0],
        ),
        {
            "day": ExpectedColumn(
                "date", missing=1, values=("2024-01-05T00:00:00.000000", "2024-02-05T00:00:00.000000", None)
            ),
            "at": ExpectedColumn(
                "date",
                values=(
                    "2024-01-05T10:30:00.000000",
                    "2024-01-06T00:00:00.000000",
                    "2024-01-07T08:00:00.000000",
                ),
            ),
            "ok": ExpectedColumn("boolean", values=(True, False, True)),
            "rate": ExpectedColumn("number", missing=1, values=(0.25, None, 3.0)),
            "code": ExpectedColumn("category", values=("007", "010", "011")),
        },
        findings=("One cell has an error in place of a value, which is then missing; D3 has #DIV/0!",),
    ),
    case(
        "formulas_that_were_never_computed.xlsx",
        workbook(HEADER, [1, "=A2", 0], [2, "=A3", 1], [3, "x", 0]),
        {"b": ExpectedColumn("category", missing=2)},
        findings=("2 formulas have no stored result",),
    ),
    case("empty.xlsx", workbook(), refusal="has no values in 'Data'"),
    case("old.xls", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(500), refusal="save it as .xlsx"),
    case("document.xlsx", zipped(word__document_xml=b"x"), refusal="'word/document.xml' is XML"),
)
JSON = (
    case("array.json", FRAME.to_json(orient="records").encode(), READ, file={"format": "JSON"}),
    case("pretty.json", json.dumps(FRAME.to_dict("records"), indent=2).encode(), READ),
    case(
        "objects_that_follow_each_other.json",
        b"\n".join(json.dumps(row, indent=1).encode() for row in FRAME.to_dict("records")),
        READ,
    ),
    case(
        "lines.json",
        FRAME.to_json(orient="records", lines=True).encode(),
        READ,
        file={"format": "JSON Lines"},
    ),
    case("pandas.json", FRAME.to_json().encode(), READ, findings=("its inner keys, such as '0'",)),
    case("lists.json", json.dumps(FRAME.to_dict("list")).encode(), READ),
    case("split.json", FRAME.to_json(orient="split").encode(), READ),
    case(
        "rows.json",
        FRAME.set_index(pd.Index(["p", "q", "r"])).to_json(orient="index").encode(),
        {**READ, "index": ExpectedColumn("category", "id", values=("p", "q", "r"))},
    ),
    case(
        "answer.json",
        json.dumps({"count": 3, "results": FRAME.to_dict("records")}).encode(),
        READ,
        findings=("The rows are the objects in 'results'; 'count' was not read",),
    ),
    case(
        "of_python.json",
        b'[{"a": NaN, "b": "x", "y": 0}, {"a": 2, "b": "z", "y": 1}]',
        {"a": ExpectedColumn("number", missing=1, values=(None, 2.0))},
    ),
    case("under_another_name.txt", FRAME.to_json(orient="records").encode(), READ),
    case("of_a_shell.json", FRAME.to_json(orient="records").encode("utf-16"), READ),
    case("numbers_alone.json", b"[1, 2, 3]", refusal="a JSON array without objects; a table is"),
    case(
        "configuration.json",
        b'{"name": {"x": 1}, "version": 3, "list": [1]}',
        refusal="no table: it has 'name'",
    ),
    case("cut.json", b'[{"a": 1}, {"a": ', refusal="it ends within an object"),
)
CASES = (*WORKBOOKS, *JSON)
