"""Words in place of missing values."""

from tests.engine.data.collection.case import ExpectedColumn, TableCase, csv_rows

CASES = (
    TableCase(
        "words_between_numbers.csv",
        csv_rows("size,y", "1.5,0", "n/a,1", "2.5,0", "3.5,1"),
        {"size": ExpectedColumn("number", "feature", missing=1, values=(1.5, None, 2.5, 3.5))},
    ),
)
