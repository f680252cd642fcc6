"""Words in place of missing values."""

from jobs.spec.data.columns import ColumnRequest
from tests.engine.data.collection.case import ExpectedColumn, TableCase, csv_rows


def colours(name: str, words: list[str], *values: str | None, **fields: object) -> TableCase:
    """Return a case whose column `colour` has these words."""
    rows = [f'"{word}",{number}.5,{number % 2}' for number, word in enumerate(words)]
    missing = sum(value is None for value in values)
    columns = {"colour": ExpectedColumn("category", "feature", missing=missing, values=values)}
    return TableCase(name, csv_rows("colour,size,y", *rows), columns, **fields)  # type: ignore[arg-type]


def labels(name: str, words: list[str], **fields: object) -> TableCase:
    """Return a case whose target has these words."""
    rows = [f"{number}.5,{word}" for number, word in enumerate(words)]
    return TableCase(name, csv_rows("size,label", *rows), **fields)  # type: ignore[arg-type]


NUMBERS = (
    TableCase(
        "words_between_numbers.csv",
        csv_rows("size,y", "1.5,0", "n/a,1", "2.5,0", "3.5,1"),
        {"size": ExpectedColumn("number", "feature", missing=1, values=(1.5, None, 2.5, 3.5))},
        gap_counts={"size": {"n/a": 1}, "y": {}},
    ),
    TableCase(
        "words_of_programs_and_of_people_between_numbers.csv",
        csv_rows("size,day,y", "NA,2021-12-24,0", "?,unknown,1", "NA,2021-12-26,0", "$3.5,NA,1", ",,0"),
        {"size": ExpectedColumn("number", missing=4), "day": ExpectedColumn("date", missing=3)},
        gap_counts={"size": {"NA": 2, "?": 1}, "day": {"unknown": 1, "NA": 1}},
    ),
    TableCase(
        "stated_words_between_numbers.csv",
        csv_rows("size,y", "$1.5,0", "gone,1", "$2.5,0", "gone ,1"),
        {"size": ExpectedColumn("number", missing=2)},
        requests=(ColumnRequest(name="size", gap_words=("gone",)),),
        gap_counts={"size": {"gone": 2}},
    ),
    TableCase(
        "words_between_booleans.csv",
        csv_rows("gift,y", "true,0", "NA,1", "false,0", "true,1"),
        {"gift": ExpectedColumn("boolean", "feature", missing=1, values=(1.0, None, 0.0, 1.0))},
        findings=("Column 'gift': 'NA' in 1 of 4 rows counts as missing.",),
        offers=(("gift", {"type": "category", "gap_words": []}),),
    ),
    TableCase(
        "values_between_booleans.csv",
        csv_rows("gift,y", "true,0", "None,1", "false,0", "true,1"),
        {"gift": ExpectedColumn("category", missing=0, values=("true", "None", "false", "true"))},
        requests=(ColumnRequest(name="gift", gap_words=()),),
    ),
    TableCase(
        "a_word_that_is_stated_to_be_no_gap.csv",
        csv_rows("gift,y", "true,0", "None,1", "false,0", "true,1"),
        requests=(ColumnRequest(name="gift", type="boolean", gap_words=()),),
        refusal="row 2 has None",
    ),
    TableCase(
        "nothing_but_words.csv",
        csv_rows("x,size,y", "NA,1,0", "NA,2,1", "NA,3,0"),
        {"x": ExpectedColumn("number", "ignore", missing=3)},
        findings=("'NA' in 3 of 3 rows counts as missing",),
        offers=(("x", {"gap_words": []}),),
    ),
)
CATEGORIES = (
    colours(
        "none_is_a_category.csv",
        ["None", "red", "None", "blue"],
        *("None", "red", "None", "blue"),
        findings=("Column 'colour': 'None' in 2 of 4 rows is read as a value, not as missing.",),
        offers=(("colour", {"gap_words": ["None"]}),),
    ),
    colours(
        "not_available.csv",
        ["NA", "red", "NA", "blue"],
        *(None, "red", None, "blue"),
        findings=("Column 'colour': 'NA' in 2 of 4 rows counts as missing.",),
        offers=(("colour", {"gap_words": []}),),
    ),
    colours(
        "word_beside_empty_cells.csv",
        ["NA", "red", "", "blue"],
        *("NA", "red", None, "blue"),
        findings=("'NA' in 1 of 4 rows is read as a value",),
        offers=(("colour", {"gap_words": ["NA"]}),),
    ),
    colours(
        "namibia.csv",
        ["NA", "DE", "FR", "ZA", "NA"],
        *("NA", "DE", "FR", "ZA", "NA"),
        findings=("'NA' in 2 of 5 rows is read as a value",),
    ),
    colours("north_dakota.csv", ["ND", "CA", "NY", "TX"], "ND", "CA", "NY", "TX", absent=("'ND'",)),
    colours(
        "question_marks.csv",
        ["?", "red", "?", "blue"],
        *("?", "red", "?", "blue"),
        findings=("'?' in 2 of 4 rows is read as a value",),
        offers=(("colour", {"gap_words": ["?"]}),),
    ),
    colours(
        "two_words.csv",
        ["NA", "red", "?", "NaN"],
        *(None, "red", "?", None),
        offers=(("colour", {"gap_words": []}), ("colour", {"gap_words": ["NA", "NaN", "?"]})),
    ),
    colours(
        "kept_as_a_value.csv",
        ["NA", "red", "NA", "blue"],
        *("NA", "red", "NA", "blue"),
        requests=(ColumnRequest(name="colour", gap_words=()),),
        absent=("'NA'",),
    ),
    colours(
        "taken_as_missing.csv",
        ["None", "red", "keine", "blue"],
        *(None, "red", None, "blue"),
        requests=(ColumnRequest(name="colour", gap_words=("None", "keine")),),
        absent=("'None'",),
    ),
    TableCase(
        "words_in_json.jsonl",
        b'{"x": "NA", "z": 1, "y": 0}\n{"x": "red", "z": 2, "y": 1}\n{"x": "NA", "z": 1, "y": 0}\n',
        {"x": ExpectedColumn("category", missing=0, values=("NA", "red", "NA"))},
        findings=("'NA' in 2 of 3 rows is read as a value",),
        offers=(("x", {"gap_words": ["NA"]}),),
        source="json_lines",
    ),
)
TARGETS = (
    labels(
        "stated_word_between_dates.csv",
        ["24.12.2021", "3.11.2021", "open", "24.12.2021", "3.11.2021", "open", "9.2.2020"],
        columns={"label": ExpectedColumn("category", "target", missing=0)},
        requests=(ColumnRequest(name="label", gap_words=("none",)),),
        gap_words={"label": ("none",)},
    ),
    labels(
        "none_is_a_class.csv",
        ["None", "sick", "None", "sick"],
        columns={"label": ExpectedColumn("category", "target", missing=0)},
        findings=("Target 'label': 'None' in 2 of 4 rows is read as a class, not as missing.",),
        offers=(("label", {"gap_words": ["None"]}),),
    ),
    labels(
        "no_class_is_dropped.csv",
        ["NA", "well", "sick", "NA", "well", "sick"],
        columns={"label": ExpectedColumn("category", "target", missing=0)},
        findings=("Target 'label': 'NA' in 2 of 6 rows is read as a class",),
    ),
    labels(
        "rows_without_a_class.csv",
        ["NA", "well", "sick", "NA", "well", "sick"],
        requests=(ColumnRequest(name="label", gap_words=("NA",)),),
        refusal="no value in 2 of 6 rows",
    ),
)
CASES: tuple[TableCase, ...] = (*NUMBERS, *CATEGORIES, *TARGETS)
