"""Texts: indices, titles above the header, comments, delimiters."""

import pandas as pd

from jobs.spec.data.columns import ColumnRequest
from tests.engine.data.collection.case import ExpectedColumn, csv_rows
from tests.engine.data.collection.contents import FRAME, INDEX, PLAIN, READ, case, parquet

INDICES = (
    case("to_csv.csv", FRAME.to_csv().encode(), {**READ, "index": INDEX}, findings=("it is called 'index'",)),
    case(
        "write_csv.csv",
        csv_rows('"","a","b","y"', '"Mazda RX4",1,"x",0', '"Datsun",2,"z",1', '"Fiat",3,"x",0'),
        {**READ, "index": ExpectedColumn("category", "id", values=("Mazda RX4", "Datsun", "Fiat"))},
    ),
    case(
        "saved_twice.csv",
        csv_rows(",Unnamed: 0,a,b,y", "0,0,1,x,0", "1,1,2,z,1", "2,2,3,x,0"),
        {**READ, "index": INDEX, "index_2": INDEX},
    ),
    case(
        "unnamed.csv",
        csv_rows("Unnamed: 0,a,b,y", "0,1,x,0", "1,2,z,1", "2,3,x,0"),
        {**READ, "index": INDEX},
    ),
    case(
        "requested_by_its_old_name.csv",
        csv_rows("Unnamed: 0,a,b,y", "5,1,x,0", "6,2,z,1", "7,3,x,0"),
        {**READ, "index": ExpectedColumn("integer", "feature", values=(5, 6, 7))},
        requests=(ColumnRequest(name="Unnamed: 0", role="feature"),),
    ),
    case(
        "taken.csv",
        csv_rows(",index,a,b,y", "7,5,1,x,0", "8,6,2,z,1", "9,7,3,x,0"),
        {**READ, "index": ExpectedColumn("integer", values=(5, 6, 7)), "index_2": INDEX},
    ),
    case(
        "two_levels.csv",
        csv_rows(",,a,b,y", "p,0,1,x,0", "p,1,2,z,1", "q,0,3,x,0"),
        {**READ, "index": ExpectedColumn("category", "id"), "index_2": INDEX},
    ),
    case(
        "dates_as_index.csv",
        csv_rows(",a,b,y", "2024-01-01,1,x,0", "2024-01-02,2,z,1", "2024-01-03,3,x,0"),
        {**READ, "index": ExpectedColumn("date", "feature")},
    ),
    case(
        "write_table.txt",
        csv_rows('"a" "b" "y"', '"Mazda RX4" 1 "x" 0', '"Datsun" 2 "z" 1', '"Fiat" 3 "x" 0'),
        {**READ, "index": ExpectedColumn("category", "id", values=("Mazda RX4", "Datsun", "Fiat"))},
        findings=("The rows have a field more than the header",),
    ),
    case(
        "write_table.tsv",
        csv_rows("a\tb\ty", "1\t1\tx\t0", "2\t2\tz\t1", "3\t3\tx\t0"),
        {**READ, "index": INDEX},
    ),
    case("named_index.parquet", parquet(FRAME.set_index("a")), READ),
    case("levels.parquet", parquet(FRAME.set_index(["a", "b"])), READ),
    case(
        "named_range.parquet",
        parquet(FRAME.set_index(pd.RangeIndex(1, 7, 2, name="row"))),
        {**READ, "row": ExpectedColumn("integer", values=(1, 3, 5))},
    ),
    case(
        "texts_as_index.parquet",
        parquet(FRAME.set_index(pd.Index(["p", "q", "r"]))),
        {**READ, "index": ExpectedColumn("category", "id", values=("p", "q", "r"))},
    ),
    case(
        "unnamed.parquet",
        parquet(FRAME.assign(**{"Unnamed: 0": [0, 1, 2]})),
        {**READ, "index": INDEX},
        target="y",
    ),
)
HEADERS = (
    case(
        "repeated_names.csv",
        csv_rows("a,a,b,b_2,b,y", "1,5,x,1,p,0", "2,6,z,2,p,1", "3,7,x,3,q,0"),
        {
            **READ,
            "a_2": ExpectedColumn("integer", "feature", values=(5, 6, 7)),
            "b_3": ExpectedColumn("category", values=("p", "p", "q")),
        },
        findings=("The header has 'a' 2 times; the further ones are called 'a_2'",),
    ),
    case(
        "a_name_missing.csv",
        csv_rows("a,,b,y", "1,5,x,0", "2,6,z,1", "3,7,x,0"),
        {**READ, "column_2": ExpectedColumn("integer", "feature")},
        findings=("The header has no name for 'column_2'",),
    ),
    case(
        "years_as_names.csv",
        csv_rows("b,2019,2020,y", "x,1,4,0", "z,2,5,1", "x,3,6,0"),
        {"2019": ExpectedColumn("integer", values=(1, 2, 3))},
    ),
    case(
        "title.csv",
        b"Sales of 2024\n\n" + PLAIN,
        READ,
        findings=("left out: 'Sales of 2024'",),
        dialect={"skip_lines": 2},
    ),
    case("title_of_a_workbook.csv", b"Sales,,\n,,\n" + PLAIN, READ, dialect={"skip_lines": 2}),
    case("facts_above.csv", b"Station,Berlin\nHeight,34\n\n" + PLAIN, READ, dialect={"skip_lines": 3}),
    case(
        "stated_delimiter.csv",
        b"sep=;\n" + PLAIN.replace(b",", b";"),
        READ,
        dialect={"delimiter": ";", "skip_lines": 1},
    ),
    case(
        "comments.csv",
        b"# made by hand\n#, twice\n" + PLAIN + b"# the end\n",
        READ,
        findings=("3 lines that are no rows were left out",),
    ),
    case("comment_between.csv", csv_rows("a,b,y", "1,x,0", "# checked until here", "2,z,1", "3,x,0"), READ),
    case("header_in_a_comment.csv", csv_rows("# a,b,y", "1,x,0", "2,z,1", "3,x,0"), READ),
    case(
        "numbers_with_a_sign.csv",
        csv_rows("#,a,b,y", "1,1,x,0", "2,2,z,1", "3,3,x,0"),
        {**READ, "#": ExpectedColumn("integer")},
    ),
    case(
        "colours.csv",
        csv_rows("colour,y", "#ff0000,0", "#00ff00,1", "#0000ff,0"),
        {"colour": ExpectedColumn("category", values=("#ff0000", "#00ff00", "#0000ff"))},
    ),
    case(
        "total.csv",
        csv_rows("b,a,y", "x,1,0", "z,2,1", "x,3,0", "Total,6,1"),
        READ,
        findings=("left out: 'Total,6,1'",),
    ),
    case(
        "total_that_is_none.csv",
        csv_rows("b,a,y", "x,1,0", "z,2,1", "Total,9,0"),
        {"b": ExpectedColumn("category", values=("x", "z", "Total"))},
        findings=("The last row begins with 'Total'",),
    ),
    case(
        "notes_below.csv",
        PLAIN + b"\nSource: Ministry\n* provisional\n",
        READ,
        findings=("'Source: Ministry'",),
    ),
    case("cut_row.csv", PLAIN + b"4", refusal="line 5 of cut_row.csv has 1 fields instead of 3"),
)
DELIMITERS = (
    case("blanks.txt", csv_rows("a b   y", "1 x 0", "2   z 1", "3 x  0"), READ, dialect={"delimiter": " "}),
    case(
        "blanks_and_tabs.data",
        csv_rows("1   2.5\tx", "2   3.5\tz", "3   4.5\tx"),
        {"column_2": ExpectedColumn("number", values=(2.5, 3.5, 4.5))},
        dialect={"delimiter": " ", "header": False},
    ),
    case(
        "decimal_commas_between_blanks.txt",
        csv_rows("a y", "1,5 0", "2,5 1", "3,5 0"),
        {"a": ExpectedColumn("number", values=(1.5, 2.5, 3.5))},
    ),
    case("bars.csv", PLAIN.replace(b",", b"|"), READ),
    case("double_colons.dat", PLAIN.replace(b",", b"::"), READ),
    case("carets.csv", PLAIN.replace(b",", b"^"), READ),
    case("control_signs.csv", PLAIN.replace(b",", b"\1"), READ),
    case("macintosh.csv", PLAIN.replace(b"\n", b"\r"), READ),
    case("zero_bytes.csv", PLAIN.replace(b"x", b"x\0\0"), READ, findings=("4 zero bytes were removed",)),
    case("one_column.csv", csv_rows("y", "1", "2"), refusal="has only one column"),
    case("vectors.txt", csv_rows("1 1:0.5 3:2", "0 2:1 3:1"), refusal="is LIBSVM"),
)
CASES = (*INDICES, *HEADERS, *DELIMITERS)
