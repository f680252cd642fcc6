"""Headers: comments of any program above them, several rows of names, equal names, fixed widths."""

import io
from functools import partial

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from tests.engine.data.collection.case import ExpectedColumn, TableCase, csv_rows

PLAIN = csv_rows("a,b,y", "1,x,0", "2,z,1", "3,x,0")
READ = {
    "a": ExpectedColumn("integer", "feature", values=(1, 2, 3)),
    "b": ExpectedColumn("category", "feature", values=("x", "z", "x")),
    "y": ExpectedColumn("integer", "target", values=(0, 1, 0)),
}
BLANKS = {"x": ExpectedColumn("number", values=(1.5, 2.5, 4.5)), "z": ExpectedColumn("integer")}
case = partial(TableCase, source=None)


def commented(sign: str) -> TableCase:
    """Return the case of a file with comments above the header, and between its rows."""
    first, second, third = (f"{sign} {text}" for text in ("made by hand", "twice, for sure", "until here"))
    return case(
        f"comments_with_{ord(sign[0])}.csv",
        csv_rows(first, second, "a,b,y", "1,x,0", third, "2,z,1", "3,x,0"),
        READ,
        findings=("3 lines that are no rows were left out",),
        dialect={"comments": True},
    )


COMMENTS = (
    *map(commented, ("#", "%", "//", "!", ";", "--")),
    case(
        "header_of_matlab.txt",
        csv_rows("% made in 2020, twice", "% x y z", "1.5 2.5 0", "2.5 3.5 1", "4.5 5.5 0"),
        BLANKS,
        dialect={"comment_sign": "%", "delimiter": " "},
    ),
    case(
        "more_comments_than_rows.csv",
        "".join(f"% line {line} of the notes, by hand\n" for line in range(20)).encode() + PLAIN,
        READ,
        findings=("20 lines that are no rows were left out",),
    ),
    case(
        "name_with_a_percent_sign.csv",
        csv_rows("% change,b,y", "1,x,0", "2,z,1", "3,x,0"),
        {"% change": ExpectedColumn("integer", values=(1, 2, 3))},
        dialect={"comments": False},
    ),
    case(
        "values_with_a_percent_sign.csv",
        csv_rows("a,b,y", "%5,x,0", "%20,z,1", "7,x,0", "8,x,1"),
        {"a": ExpectedColumn("category", values=("%5", "%20", "7", "8"))},
        dialect={"comments": False},
    ),
    case(
        "name_and_first_value_with_a_percent_sign.csv",
        csv_rows("% a,b,y", "%5,1,0", "7,2,1", "8,3,0", "9,3,0"),
        {"% a": ExpectedColumn("category", values=("%5", "7", "8", "9"))},
    ),
    case(
        "index_between_semicolons.csv",
        csv_rows(";a;b;y", "0;1;x;0", "1;2;z;1", "2;3;x;0"),
        {**READ, "index": ExpectedColumn("integer", "id")},
        dialect={"comments": False},
    ),
    case(
        "marks_of_headings_in_quotes.csv",
        csv_rows("a,b,y", '1,"# Title\n# more, of it",0', '2,"% a\n% b, c, d",1', "3,plain,0"),
        {"b": ExpectedColumn("category", values=("# Title\n# more, of it", "% a\n% b, c, d", "plain"))},
        absent=("left out",),
    ),
)
LEVELS = pd.DataFrame(
    [[1, 2, 0], [3, 4, 1], [5, 6, 0]],
    columns=pd.MultiIndex.from_tuples([("a", "mean"), ("a", "std"), ("t", "y")]),
)
NAMED_LEVELS = LEVELS.rename_axis("row").rename_axis(["upper", "lower"], axis="columns")
JOINED = {
    "a_mean": ExpectedColumn("integer", values=(1, 3, 5)),
    "a_std": ExpectedColumn("integer", values=(2, 4, 6)),
    "t_y": ExpectedColumn("integer", "target", values=(0, 1, 0)),
}
HEADER_ROWS = (
    case(
        "units.csv",
        csv_rows("depth,temperature,y", "m,°C,", "1,2.5,0", "2,3.5,1", "3,4.5,0"),
        {
            "depth": ExpectedColumn("integer", values=(1, 2, 3)),
            "temperature": ExpectedColumn("number", values=(2.5, 3.5, 4.5)),
            "y": ExpectedColumn("integer", "target", missing=0),
        },
        findings=("The header has 2 rows; 'm,°C,' below the names is left out.",),
        dialect={"header_rows": 2},
    ),
    case(
        "unit_of_one_column.csv",
        csv_rows("depth,b,y", "(m),,", "1,x,p", "2,z,q", "3,x,p"),
        {"depth": ExpectedColumn("integer", values=(1, 2, 3)), "b": ExpectedColumn("category", missing=0)},
    ),
    case(
        "codes_of_a_survey.csv",
        csv_rows("Q1,Q2,Q3", "How old?,How many?,Which?", "31,2,x", "42,3,z", "53,1,x"),
        {"Q1": ExpectedColumn("integer", values=(31, 42, 53)), "Q3": ExpectedColumn("category")},
        findings=("'How old?,How many?,Which?' below the names is left out",),
    ),
    case(
        "levels_of_pandas.csv", LEVELS.to_csv().encode(), {**JOINED, "index": ExpectedColumn("integer", "id")}
    ),
    case("levels_without_index.csv", LEVELS.to_csv(index=False).encode(), JOINED),
    case(
        "levels_with_names.csv",
        NAMED_LEVELS.to_csv().encode(),
        {**JOINED, "row": ExpectedColumn("integer", values=(0, 1, 2))},
        findings=("The header has 3 rows; their names are joined, as in 'a_mean'.",),
        dialect={"header_rows": 3},
    ),
    case(
        "wide_cells.csv",
        csv_rows("id,Price,,Sold", ",mean,std,y", "1,2,3,0", "2,3,4,1", "3,4,5,0"),
        {"Price_mean": ExpectedColumn("integer"), "Price_std": ExpectedColumn("integer")},
    ),
    case(
        "years_in_wide_cells.csv",
        csv_rows(",2019,,2020,", "b,q1,q2,q1,y", "x,1,4,6,0", "z,2,5,7,1", "x,3,6,8,0"),
        {"b": ExpectedColumn("category"), "2019_q1": ExpectedColumn("integer", values=(1, 2, 3))},
        target="2020_y",
    ),
    case(
        "years_below_wide_cells.csv",
        csv_rows("b,Sales,,Cost,", ",2019,2020,2019,2020", "x,1,4,6,0", "z,2,5,7,1", "x,3,6,8,0"),
        {"b": ExpectedColumn("category"), "Sales_2020": ExpectedColumn("integer", values=(4, 5, 6))},
    ),
    case(
        "names_missing_above_a_year.csv",
        csv_rows("b,since,,y", "x,2019,4,0", "z,2020,5,1", "x,2021,6,0"),
        {"since": ExpectedColumn("integer", values=(2019, 2020, 2021))},
        dialect={"header_rows": 1},
    ),
    case(
        "word_in_the_first_row.csv",
        csv_rows("a,b,y", "error,x,0", "2,z,1", "3,x,0"),
        {"a": ExpectedColumn("category", values=("error", "2", "3"))},
        dialect={"header_rows": 1},
    ),
    case(
        "one_word_in_the_first_row.csv",
        csv_rows("name,a,b,y", "Anna,absent,absent,p", "Bob,1,2,q", "Carl,2,3,p"),
        {"a": ExpectedColumn("category", values=("absent", "1", "2"))},
        dialect={"header_rows": 1},
    ),
    case(
        "types_below_names.csv",
        csv_rows("a,b,y", "num,num,num", "1,2,0", "2,3,1", "3,5,0"),
        {"a": ExpectedColumn("integer", values=(1, 2, 3))},
    ),
    case(
        "gaps_in_the_first_row.csv",
        csv_rows("a,b,y", "NA,n/a,0", "2,1,1", "3,1,0"),
        {"a": ExpectedColumn("number", missing=1), "b": ExpectedColumn("number", missing=1)},
        dialect={"header_rows": 1},
    ),
    case(
        "category_of_the_first_row.csv",
        csv_rows("a,b,c,y", "low,high,x,0", "2,1,x,1", "3,1,z,0"),
        {"a": ExpectedColumn("category", values=("low", "2", "3"))},
        dialect={"header_rows": 1},
    ),
)


def parquet_of(table: pa.Table) -> bytes:
    target = io.BytesIO()
    pq.write_table(table, target)
    return target.getvalue()


def arrow_of(table: pa.Table) -> bytes:
    target = io.BytesIO()
    with pa.ipc.new_file(target, table.schema) as writer:
        writer.write_table(table)
    return target.getvalue()


EQUAL = pa.table([[1, 2, 3], ["x", "z", "x"], [4, 5, 6], [0, 1, 0]], names=["a", "b", "a", "y"])
EQUAL_READ = {**READ, "a_2": ExpectedColumn("integer", values=(4, 5, 6))}
SUFFIX = ("The header has 'a' 2 times; the further ones are called 'a_2'",)
EQUAL_NAMES = (
    case("equal_names.parquet", parquet_of(EQUAL), EQUAL_READ, findings=SUFFIX, source="parquet"),
    case("equal_names.arrow", arrow_of(EQUAL), EQUAL_READ, findings=SUFFIX, source="arrow"),
)
FIXED_WIDTHS = (
    case(
        "fixed_widths.txt",
        csv_rows("id    x     z", "1     1.5   0", "2     2.5   1", "3     4.5   0"),
        BLANKS,
    ),
    case(
        "fixed_widths_with_a_gap.txt",
        csv_rows("id    x     z", "1     1.5   0", "2           1", "3     4.5   0"),
        refusal="has columns of fixed widths, and blanks do not show the fields of line 3, which has no "
        "value in column 2",
    ),
    case(
        "fixed_widths_with_names.txt",
        csv_rows(
            "name      age  city      y",
            "Anna      32   Oslo      0",
            "Bob       29             1",
            "Emil      35   New York  0",
        ),
        refusal="pandas.read_fwf('fixed_widths_with_names.txt').to_csv(",
    ),
    case(
        "fixed_widths_with_equally_many_words.txt",
        csv_rows(
            "name      age  city  y",
            "Anna      32   Oslo  0",
            "Bob       29   Rome  1",
            "Carl      35   Bonn  0",
            "Dora      35   Kyiv  0",
            "Ann Lee        Nice  1",
            "Emil      35   York  0",
        ),
        refusal="line 6, which has",
    ),
)
CASES = (*COMMENTS, *HEADER_ROWS, *EQUAL_NAMES, *FIXED_WIDTHS)
