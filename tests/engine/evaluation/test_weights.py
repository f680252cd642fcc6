"""The column role weight: from the file to trainings, evaluations and gates."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jobs.messages.task import DatasetFile
from jobs.spec.data.columns import ColumnRequest
from jobs.spec.data.profile import Profile
from jobs.spec.sections.data import Window
from tests.engine.helpers import csv_file, profiled, spec_of
from tests.present import present
from workers.engine.data.dataset import Dataset, load_dataset
from workers.engine.errors import BadData, BadSpec
from workers.engine.training.prepare import prepare

WEIGHT = (ColumnRequest(name="w", role="weight"),)
ROWS = 80
FIT = {"epochs": 2, "batch_size": 16, "learning_rate": 0.01}


def text_of(weight: Callable[[int], Any] = lambda row: row % 4, rows: int = ROWS) -> str:
    lines = (f"{row % 7},{row % 5},{weight(row)},{'yes' if row % 7 > 3 else 'no'}" for row in range(rows))
    return "\n".join(["a,b,w,y", *lines])


def file_of(folder: Path, text: str, columns: tuple[ColumnRequest, ...] = WEIGHT, **more: Any) -> DatasetFile:
    path = csv_file(folder, text)
    return profiled(folder / "p", source="csv", path=path, target="y", columns=columns, **more)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> DatasetFile:
    return file_of(tmp_path_factory.mktemp("weights"), text_of())


@pytest.fixture(scope="module")
def data(file: DatasetFile) -> Dataset:
    return load_dataset(file, present(spec_of("d").data))


def test_a_weight_is_no_feature(file: DatasetFile) -> None:
    profile = Profile.model_validate(file.profile)
    assert (profile.weight, profile.features) == ("w", ("a", "b"))
    (column,) = (described for described in profile.columns if described.name == "w")
    assert (column.role, column.reason) == ("weight", "it was given the role weight")


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (lambda row: -0.5 if row == 6 else 1, "'w' has the role weight, and the value -0.5 in row 7"),
        (lambda row: "" if row == 6 else 1, "'w' has the role weight, and no value in row 7"),
        (lambda row: "" if row == 6 else 0.5, "'w' has the role weight, and no value in row 7"),
        (lambda row: "much" if row == 6 else 1, "'w' is not of type number: row 7 has much"),
        (lambda row: row % 2 == 0, "'w' is not of type number: row 1 has True"),
        (lambda _: 0, "'w' has the role weight, and is 0 in all rows"),
        (lambda row: f"2026-01-{row % 28 + 1:02}", "'w' is not of type number: row 1 has 2026-01-01"),
    ],
)
def test_other_weights_are_refused_with_the_column_and_the_first_row(
    tmp_path: Path, weight: Callable[[int], Any], message: str
) -> None:
    with pytest.raises(BadData, match=message):
        file_of(tmp_path, text_of(weight))


def without_targets(weight: Callable[[int], Any]) -> str:
    """Return a file whose first ten rows have no target."""
    head, *lines = text_of(weight).splitlines()
    return "\n".join([head, *(line.rsplit(",", 1)[0] + "," for line in lines[:10]), *lines[10:]])


def test_rows_without_a_target_that_are_left_out_need_no_weight(tmp_path: Path) -> None:
    text = without_targets(lambda row: "" if row < 10 else 1)
    file = file_of(tmp_path, text, rows_without_target="leave_out")
    assert Profile.model_validate(file.profile).rows == ROWS - 10


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (lambda row: -2 if row in (3, 20) else 1, "the value -2.* in row 21"),
        (lambda row: 1 if row < 10 else 0, "is 0 in all rows that have a target"),
    ],
)
def test_the_rows_that_have_a_target_need_weights(
    tmp_path: Path, weight: Callable[[int], Any], message: str
) -> None:
    with pytest.raises(BadData, match=message):
        file_of(tmp_path, without_targets(weight), rows_without_target="leave_out")


def test_an_infinite_weight_of_a_file_of_numbers_is_refused(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table({"a": range(4), "w": [1.0, np.inf, 1.0, 1.0], "y": ["n", "y", "n", "y"]})
    pq.write_table(table, tmp_path / "d.parquet")
    with pytest.raises(BadData, match="and the value inf in row 2"):
        profiled(
            tmp_path / "p", source="parquet", path=str(tmp_path / "d.parquet"), target="y", columns=WEIGHT
        )


def test_a_weight_cannot_be_a_feature_or_the_target_as_well(tmp_path: Path, file: DatasetFile) -> None:
    with pytest.raises(BadData, match=r"'w' has the role weight, and is also a feature or the target$"):
        file_of(tmp_path, text_of(), features=("a", "w"))
    for part in ({"features": ("a", "w")}, {"target": "w"}):
        spec = present(spec_of("d").data).model_copy(update=part)
        with pytest.raises(BadSpec, match="'w' has the role weight and cannot also be"):
            load_dataset(file, spec)


def test_a_part_in_which_all_weights_are_0_is_refused(tmp_path: Path) -> None:
    text = text_of(lambda row: int(row < 50))
    file = file_of(tmp_path, text.replace("a,b,w,y", "a,t,w,y"))
    spec = present(spec_of("d", split={"time": "a", "validation": 0.2, "test": 0.2}).data)
    assert load_dataset(file, spec).weights is not None
    (tmp_path / "later").mkdir()
    file = file_of(tmp_path / "later", text_of(lambda row: int(row % 7 < 4)))
    with pytest.raises(BadSpec, match="rows of a part have weight 0 in column 'w'"):
        load_dataset(file, spec)


@pytest.mark.parametrize("largest", [1e-300, 1e300])
def test_only_the_ratios_of_weights_count(tmp_path: Path, data: Dataset, largest: float) -> None:
    file = file_of(tmp_path, text_of(lambda row: row % 4 / 3 * largest))
    dataset, rows = load_dataset(file, present(spec_of("d").data)), data.parts.train
    spec = spec_of("d", args={"units": 4}, fit=FIT)
    weights, expected = (
        prepare(spec, source, rows, name="t", seed=0).batches.weights for source in (dataset, data)
    )
    np.testing.assert_allclose(weights, expected, rtol=1e-6)
    assert expected.mean() == pytest.approx(1.0)


def test_rows_that_are_read_from_their_file_have_their_weights(file: DatasetFile, data: Dataset) -> None:
    streamed = load_dataset(file, present(spec_of("d").data), in_memory_bytes=0)
    assert streamed.is_streamed and streamed.weights is not None and data.weights is not None
    np.testing.assert_array_equal(streamed.weights.values, data.weights.values)


def test_a_window_has_the_weight_of_the_row_that_it_predicts(tmp_path: Path) -> None:
    text = text_of().replace("a,b,w,y", "a,t,w,y")
    lines = [f"{row},{line}" for row, line in enumerate(text.splitlines()[1:])]
    roles = (*WEIGHT, ColumnRequest(name="at", role="time"))
    file = file_of(tmp_path, "\n".join(["at,a,t,w,y", *lines]), roles)
    data = load_dataset(
        file, present(spec_of("d").data).model_copy(update={"window": Window(rows=3, horizon=1)})
    )
    rows, weights = data.parts.train, data.weights_of(data.parts.train)
    assert data.x.shape[1] == 3 and len(rows) < ROWS * 0.6 and weights is not None
    np.testing.assert_allclose(weights.values, rows % 4 / 3)
