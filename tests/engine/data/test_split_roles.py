"""Columns with the role group or time: how they split the rows, and refusals."""

from pathlib import Path

import numpy as np
import pytest

from jobs.messages.task import DatasetFile
from jobs.spec.data.columns import ColumnRequest
from jobs.spec.data.profile import Profile
from jobs.spec.data.split_roles import resolved
from tests.engine.helpers import csv_file, profiled, spec_of
from tests.present import present
from workers.engine.data.dataset import Dataset, load_dataset
from workers.engine.data.folds import rows_for
from workers.engine.errors import BadData
from workers.engine.training.model_cache import ModelCache

ROWS = 60
UNITS = [{"name": "units", "kind": "int", "min": 8, "max": 16}]


def visits() -> str:
    """Return a CSV file of 12 patients with five visits each, newest first."""
    lines = ["patient,day,value,kind,ill"]
    lines += [
        f"P{i % 12:02},2026-01-{1 + (ROWS - i) // 2:02},{i * 7 % 11}.5,k{i % 3},{i % 2}" for i in range(ROWS)
    ]
    return "\n".join(lines) + "\n"


def read(folder: Path, **roles: str) -> DatasetFile:
    requests = [ColumnRequest.model_validate({"name": name, "role": role}) for name, role in roles.items()]
    return profiled(folder, source="csv", path=csv_file(folder, visits()), target="ill", columns=requests)


def load(file: DatasetFile, **data: object) -> Dataset:
    split = data.pop("split", {})
    return load_dataset(file, present(spec_of("visits", split=split).data).model_copy(update=data))


def test_rows_of_a_group_stay_in_one_part_by_default(tmp_path: Path) -> None:
    loaded = load(read(tmp_path, patient="group"))
    patients = present(loaded.table).columns["patient"]
    parts = [{*patients[rows].tolist()} for rows in loaded.parts]
    assert sum(map(len, parts)) == 12, "no patient is in two parts"
    assert loaded.profile.features == ("day", "value", "kind"), "the group is no feature"


def test_the_oldest_rows_train_by_default_if_a_column_has_the_role_time(tmp_path: Path) -> None:
    loaded = load(read(tmp_path, day="time"))
    days = present(loaded.table).columns["day"]
    train, validation, test = (days[rows] for rows in loaded.parts)
    assert train.max() <= validation.min() and validation.max() <= test.min()


def test_time_goes_before_group(tmp_path: Path) -> None:
    profile = Profile.model_validate(read(tmp_path, day="time", patient="group").profile)
    assert resolved(present(spec_of("visits").data).split, profile).time == "day"
    assert resolved(present(spec_of("visits").data).split, profile).group is None


@pytest.mark.parametrize(
    ("split", "column"),
    [({"use_roles": False}, None), ({"group": "kind"}, "kind"), ({"column": "kind"}, None)],
)
def test_a_split_that_says_otherwise_does_not_follow_the_roles(
    tmp_path: Path, split: dict[str, object], column: str | None
) -> None:
    profile = Profile.model_validate(read(tmp_path, patient="group").profile)
    assert resolved(present(spec_of("visits", split=split).data).split, profile).group == column


def test_a_group_may_be_a_feature_in_addition(tmp_path: Path) -> None:
    loaded = load(read(tmp_path, patient="group"), features=("patient", "value"))
    assert loaded.profile.features == ("patient", "value")
    assert loaded.groups is not None


def test_folds_keep_the_rows_of_a_group_together(tmp_path: Path) -> None:
    loaded = load(read(tmp_path, patient="group"))
    search = {"space": UNITS, "max_trials": 1, "evaluation": {"kind": "k_fold", "folds": 3}}
    spec = spec_of("visits", search=search)
    turn = spec.search.evaluation.turn(1)  # type: ignore[union-attr]
    fold = rows_for(turn, loaded, spec)
    patients = present(loaded.table).columns["patient"]
    assert not {*patients[fold.train].tolist()} & {*patients[fold.validation].tolist()}


@pytest.mark.parametrize(
    ("roles", "message"),
    [
        ({"kind": "time"}, "column 'kind' of type category has no order in time"),
        ({"ill": "group"}, "column 'ill' has the role group, and is also a feature or the target"),
    ],
)
def test_roles_that_cannot_split_are_refused(tmp_path: Path, roles: dict[str, str], message: str) -> None:
    with pytest.raises(BadData, match=message):
        read(tmp_path, **roles)


def test_a_feature_by_name_has_no_role_of_the_split(tmp_path: Path) -> None:
    request = ColumnRequest(name="patient", role="group")
    with pytest.raises(BadData, match="an experiment may choose it as a feature in addition"):
        profiled(
            tmp_path,
            source="csv",
            path=csv_file(tmp_path, visits()),
            target="ill",
            features=("patient", "value"),
            columns=[request],
        )


def test_a_warm_runner_loads_a_version_with_other_roles_again(tmp_path: Path) -> None:
    plain, grouped = read(tmp_path), read(tmp_path, patient="group")
    assert plain.digest == grouped.digest, "the same columns and target"
    cache, spec = ModelCache(), spec_of("visits")
    before, after = cache.load(plain, spec), cache.load(grouped, spec)
    assert "patient" in before.profile.features and "patient" not in after.profile.features
    assert not np.array_equal(before.parts.train, after.parts.train)
