"""Rows without a target: they are refused with their number, or left out with consent."""

import json
from pathlib import Path

import numpy as np
import pytest

from jobs.messages.task import DatasetFile
from jobs.spec.data.columns import ColumnRequest
from jobs.spec.data.profile import Profile
from tests.engine.helpers import csv_file, profiled, spec_of
from tests.present import present
from workers.engine.data.dataset import load_dataset
from workers.engine.errors import BadData, TargetGaps

HEAD = "a,b,price\n"


def table(gaps: set[int], rows: int = 30) -> str:
    return HEAD + "".join(f"{i},x{i % 3},{'' if i in gaps else i + 0.5}\n" for i in range(rows))


def read(folder: Path, text: str, **task: object) -> DatasetFile:
    return profiled(folder, source="csv", path=csv_file(folder, text), **task)


def test_a_target_with_gaps_is_refused_with_their_number_and_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(TargetGaps) as refused:
        read(tmp_path, table({4, 9}))
    assert refused.value.code == "target_gaps"
    assert str(refused.value) == (
        "the target 'price' has no value in 2 of 30 rows, the first in row 5; choose to leave these rows out "
        "(rows_without_target = leave_out), or upload a file in which they have a target"
    )


def test_rows_without_a_target_are_left_out_with_consent_and_counted(tmp_path: Path) -> None:
    file = read(tmp_path, table({4, 9}), rows_without_target="leave_out")
    profile = Profile.model_validate(file.profile)
    assert (profile.rows, profile.rows_without_target) == (28, 2)
    assert profile.findings[0] == (
        "2 rows without a value of the target 'price' were left out. The other sentences count rows "
        "without them."
    )
    loaded = load_dataset(file, present(spec_of("prices").data))
    assert len(loaded.x) == 28 and np.isfinite(loaded.y).all()
    assert 4 not in present(loaded.table).columns["a"][:].tolist()


def test_consent_changes_nothing_without_gaps(tmp_path: Path) -> None:
    plain, agreed = (
        read(tmp_path, table(set())),
        read(tmp_path, table(set()), rows_without_target="leave_out"),
    )
    assert plain.digest == agreed.digest and plain.profile == agreed.profile


def test_a_target_without_any_value_is_refused_in_spite_of_consent(tmp_path: Path) -> None:
    with pytest.raises(BadData, match="'price' has no value in any row"):
        read(tmp_path, table(set(range(30))), target="price", rows_without_target="leave_out")


@pytest.mark.parametrize("source", ["csv", "json_lines"])
def test_truth_values_keep_their_names_if_rows_without_one_are_left_out(tmp_path: Path, source: str) -> None:
    def classes(folder: str, gap: bool) -> tuple[str, ...]:
        place = tmp_path / folder
        place.mkdir()
        values = [None if gap and i == 4 else i % 2 == 0 for i in range(30)]
        path = place / f"data.{source}"
        if source == "csv":
            cells = ["" if value is None else str(value) for value in values]
            path.write_text("a,ill\n" + "".join(f"{i},{cell}\n" for i, cell in enumerate(cells)))
        else:
            rows = [{"a": i, "ill": value} for i, value in enumerate(values)]
            path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        file = profiled(place, source=source, path=str(path), rows_without_target="leave_out")
        profile = Profile.model_validate(file.profile)
        assert (profile.task, profile.rows) == ("binary", 29 if gap else 30)
        return profile.class_labels

    assert classes("gap", True) == classes("whole", False) == ("False", "True")


def test_numbers_that_a_person_calls_truth_values_keep_their_names_without_a_gap(tmp_path: Path) -> None:
    request = [ColumnRequest(name="price", type="boolean")]

    def classes(gaps: set[int]) -> tuple[str, ...]:
        rows = "".join(f"{i},x{i % 3},{'' if i in gaps else i % 2}\n" for i in range(30))
        file = read(tmp_path, HEAD + rows, columns=request, target="price", rows_without_target="leave_out")
        return Profile.model_validate(file.profile).class_labels

    assert classes({4}) == classes(set()) == ("0", "1")


def test_rows_of_arrays_cannot_be_left_out(tmp_path: Path) -> None:
    np.savez(tmp_path / "d.npz", x=np.zeros((4, 2)), y=np.array([1.0, np.nan, 2, 3]))
    with pytest.raises(BadData, match="of tables, not of arrays"):
        profiled(tmp_path, source="npz", path=str(tmp_path / "d.npz"), rows_without_target="leave_out")


def test_a_target_of_regression_is_read_as_numbers(tmp_path: Path) -> None:
    text = "a,y\n" + "".join(f'{row % 7}.5,"{row},5"\n' for row in range(30))
    profile = Profile.model_validate(read(tmp_path, text, task="regression").profile)
    assert profile.task == "regression" and profile.columns[1].type == "number"


def test_a_number_to_predict_that_is_none_is_named(tmp_path: Path) -> None:
    text = "a,y\n" + "".join(f"{row % 7}.5,{'unclear' if row == 4 else row}\n" for row in range(30))
    with pytest.raises(TargetGaps, match=r"in 1 of 30 rows \(row 5 has 'unclear', which is no number\)"):
        read(tmp_path, text, task="regression")


def test_words_are_not_predicted_as_numbers(tmp_path: Path) -> None:
    text = "a,y\n" + "".join(f"{row % 7}.5,{'low' if row % 2 else 'high'}\n" for row in range(30))
    with pytest.raises(BadData, match="no value is a number, row 1 has high"):
        read(tmp_path, text, task="regression")


def test_a_row_that_is_left_out_decides_nothing_about_the_others(tmp_path: Path) -> None:
    rows = "".join(f"{row}.5,{row % 3},{row % 2}\n" for row in range(30))
    path = csv_file(tmp_path, f"x,z,y\n{rows}sum,9,\n")
    file = profiled(tmp_path / "version", source="csv", path=path, rows_without_target="leave_out")
    profile = Profile.model_validate(file.profile)
    column = next(column for column in profile.columns if column.name == "x")
    assert (column.type, column.role, column.missing) == ("number", "feature", 0)
    assert not any("'sum'" in offer.finding for offer in profile.offers)
