"""A slice's rows: a column's values as uploaded, and which of them equal a text."""

import numpy as np
import pytest

from jobs.messages.task import DatasetFile
from tests.engine.helpers import csv_file, profiled
from workers.engine.data.dataset import UploadedColumns, equal_to
from workers.engine.errors import BadData

TABLE = "city,age,member,y\n" + "".join(
    f"{city},{age},{member},{age % 2}\n"
    for city, age, member in [("Paris", 30, "true"), ("Oslo", 41, "false"), ("Paris", 52, "true")] * 8
)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> DatasetFile:
    folder = tmp_path_factory.mktemp("slices")
    return profiled(folder / "p", source="csv", path=csv_file(folder, TABLE), target="y", task="binary")


def test_text_is_compared_as_text_and_numbers_as_numbers(file: DatasetFile) -> None:
    assert equal_to(UploadedColumns(file).values("city"), "Paris").sum() == 16
    for written in ("41", "41.0", " 41"):
        assert equal_to(UploadedColumns(file).values("age"), written).sum() == 8
    assert equal_to(UploadedColumns(file).values("age"), "forty").sum() == 0


def test_truth_values_are_compared_in_both_spellings() -> None:
    values = np.array([True, False, True])
    assert equal_to(values, "true").tolist() == equal_to(values, "1").tolist() == [True, False, True]
    assert equal_to(values, "False").tolist() == [False, True, False]


def test_a_column_that_is_not_there_is_named_with_those_that_are(file: DatasetFile) -> None:
    with pytest.raises(BadData, match="no column 'town'; the columns are city, age"):
        UploadedColumns(file).values("town")
    with pytest.raises(BadData, match="no column"):
        UploadedColumns(None).values("town")
