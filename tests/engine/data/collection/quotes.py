r"""Quotes that other programs write: \" inside of texts, and ' in place of "."""

from tests.engine.data.collection.case import ExpectedColumn, TableCase, csv_rows

ESCAPED = (
    TableCase(
        "quotes_with_a_backslash.csv",
        csv_rows("a,y", '"x",0', '"see \\"hi\\" to all",1', '"z",0'),
        refusal='line 3 of quotes_with_a_backslash.csv has quotes with a backslash, \\"',
    ),
    TableCase(
        "a_delimiter_between_quotes_with_a_backslash.csv",
        csv_rows("a,y", '"a \\"b, c\\" d",1', '"z",0'),
        refusal="escapechar=",
    ),
    TableCase(
        "a_quote_far_behind.csv",
        csv_rows("a,y", *['"x",1'] * 20_000, '"5\\" disk",0'),
        refusal="line 20002",
    ),
    TableCase(
        "quotes_with_a_backslash_in_utf_16.csv",
        csv_rows("a,y", '"see \\"hi\\" to all",1', '"z",0').decode().encode("utf-16"),
        refusal="line 2 of quotes_with_a_backslash_in_utf_16.csv",
    ),
    TableCase(
        "quotes_with_a_backslash_in_a_later_line_in_utf_16.csv",
        csv_rows("a,y", '"see\nwhat \\"hi\\" means",1', '"z",0').decode().encode("utf-16"),
        refusal="line 3 of quotes_with_a_backslash_in_a_later_line_in_utf_16.csv",
    ),
    TableCase(
        "folders_that_end_with_a_backslash.csv",
        csv_rows("a,b,y", '"C:\\data\\","x",0', '"C:\\","D:\\" ,1', "E,x,1"),
        {"a": ExpectedColumn("category", values=("C:\\data\\", "C:\\", "E"))},
    ),
    TableCase(
        "json_in_a_text.csv",
        csv_rows("a,y", '"{""k"": ""see \\""hi\\"" to""}",0', '"{""k"": ""z""}",1', '"{""k"": ""x""}",1'),
        {"a": ExpectedColumn("category", values=('{"k": "see \\"hi\\" to"}', '{"k": "z"}', '{"k": "x"}'))},
    ),
)
SINGLE = (
    TableCase(
        "single_quotes.csv",
        csv_rows("a,y", "'x',0", "'z',1", "'w',1"),
        {"a": ExpectedColumn("category", values=("'x'", "'z'", "'w'"))},
        findings=("Values such as 'x' are between ', which is kept",),
    ),
    TableCase(
        "a_delimiter_between_single_quotes.csv",
        csv_rows("a,y", "'x, z',0", "'w',1", "z,1"),
        refusal="a delimiter between ' and ' divides fields",
    ),
    TableCase(
        "words_with_an_apostrophe.csv",
        csv_rows("a,y", "rock 'n' roll,0", "'tis,1", "dogs',1"),
        {"a": ExpectedColumn("category")},
        absent=("between '",),
    ),
)
CASES: tuple[TableCase, ...] = (*ESCAPED, *SINGLE)
