"""Models that read windows, and windows that are refused."""

from pathlib import Path
from typing import Any

import pytest

from jobs.messages.task import DatasetFile
from jobs.spec.checks.data import problems
from jobs.spec.data.encoding import encoded
from jobs.spec.data.profile import Profile
from jobs.spec.plan.variables import variables
from jobs.spec.signature import InputColumn, InputWindow, Signature, TensorSpec
from tests.engine.data.test_windows import load, spec_with
from tests.engine.helpers import spec_of
from tests.engine.sequences import sensors
from tests.engine.small_training import train_on
from tests.present import present
from workers.engine.data.dataset import load_dataset
from workers.engine.data.folds import rows_for
from workers.engine.errors import BadSpec
from workers.engine.evaluation.signature_gate import signature_gate
from workers.engine.models.build import build
from workers.engine.models.scaling import measure_scaling
from workers.engine.training.trees import PreparedTrees

FIT = {"epochs": 20, "batch_size": 16, "learning_rate": 0.03}


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> DatasetFile:
    return sensors(tmp_path_factory.mktemp("sensors"))


def test_a_gru_learns_what_only_an_earlier_row_shows(tmp_path: Path, table: DatasetFile) -> None:
    window, args = {"rows": 4}, {"kind": "gru", "units": 8}
    spec = spec_with(window, args=args, fit=FIT)
    trained = train_on(table, tmp_path / "run", template="sequence", args=args, fit=FIT, data=spec.data)
    assert trained.result.history[-1]["val_accuracy"] > 0.8


def test_numbers_are_predicted_from_windows_too(tmp_path: Path) -> None:
    spec = spec_with({"rows": 3})
    file = sensors(tmp_path, target="load")
    trained = train_on(
        file,
        tmp_path / "run",
        template="sequence",
        args={"kind": "conv", "units": 8},
        fit=FIT,
        data=spec.data,
    )
    assert trained.result.history[-1]["val_loss"] < 0.3


@pytest.mark.parametrize("template", ["sequence", "mlp", "linear"])
def test_the_plan_knows_the_variables_of_a_model_with_embedded_categories(
    table: DatasetFile, template: str
) -> None:
    spec = spec_with({"rows": 3}, template=template)
    options = {"mode": {"encode": "embedding"}}
    data = {**spec.data.model_dump(mode="json"), "preprocessing": options}
    spec = type(spec).model_validate({**spec.to_json(), "data": data})
    loaded = load_dataset(table, spec.data)
    scaling = measure_scaling(loaded.x[loaded.parts.train], loaded.y[loaded.parts.train], loaded.profile)
    model = build(spec, loaded.profile, scaling, name="m", seed=0)
    described = encoded(spec, Profile.model_validate(table.profile))
    assert described.input_shape == loaded.profile.input_shape
    built = [(v.path, tuple(v.shape)) for v in model.weights]
    assert [(v.path, v.shape) for v in variables(spec.model, described)] == built


def test_a_fold_by_group_has_whole_sensors(table: DatasetFile) -> None:
    search = {"max_trials": 1, "evaluation": {"kind": "k_fold", "folds": 2}}
    search |= {"space": [{"name": "units", "kind": "int", "min": 8, "max": 9}]}
    spec = spec_with({"rows": 3}, split={"group": "sensor", "validation": 0.25, "test": 0.25}, search=search)
    assert not problems(spec, Profile.model_validate(table.profile))
    loaded = load_dataset(table, spec.data)
    from jobs.spec.sections.evaluation import Turn

    fold = rows_for(Turn(fold=1, repeat=1), loaded, spec)
    sensors_of = [{*present(loaded.table).columns["sensor"][rows]} for rows in fold]
    assert not sensors_of[0] & sensors_of[1]


REFUSALS: list[tuple[dict[str, Any], dict[str, Any], str, str]] = [
    ({"time": "power2"}, {}, "/data/window/time", "no column 'power2'"),
    ({"time": "mode"}, {}, "/data/window/time", "of type category has no order"),
    ({"group": "shop"}, {}, "/data/window/group", "no column 'shop'"),
    ({"rows": 1000}, {}, "/data/window/rows", "does not fit into 160 rows"),
    ({}, {"use_roles": False}, "/data/split/time", "windows overlap"),
    ({"group": "sensor"}, {"group": "mode"}, "/data/window/group", "by the group 'mode' would have the same"),
]


@pytest.mark.parametrize(("window", "split", "pointer", "message"), REFUSALS)
def test_windows_that_cannot_work_are_refused_with_the_field(
    table: DatasetFile, window: Any, split: Any, pointer: str, message: str
) -> None:
    messages = {
        p.pointer: p.message
        for p in problems(spec_with(window, split=split), Profile.model_validate(table.profile))
    }
    assert message in messages[pointer]


def test_a_table_needs_windows_for_the_template_and_an_array_takes_none(
    tmp_path: Path, table: DatasetFile
) -> None:
    from tests.engine.sequences import waves

    (without,) = problems(spec_of("d", "sequence"), Profile.model_validate(table.profile))
    assert without.pointer == "/model/template" and "read as sequences with data.window" in without.message
    (array,) = problems(spec_with({}), Profile.model_validate(waves(tmp_path).profile))
    assert array.pointer == "/data/window" and "windows are for tables" in array.message


def test_parts_without_a_window_are_refused(table: DatasetFile) -> None:
    with pytest.raises(BadSpec, match=r"the train part has no window of 40 rows of a value of 'sensor'"):
        load(table, {"rows": 40})


@pytest.mark.parametrize("method", ["boosting", "random_forest"])
def test_trees_read_the_rows_of_a_window_side_by_side(table: DatasetFile, method: str) -> None:
    from workers.engine.training.prepare import prepare

    spec = spec_with({"rows": 3}, template="trees", args={"method": method}, fit={"epochs": 2})
    data = {**spec.data.model_dump(mode="json"), "preprocessing": {"mode": {"encode": "embedding"}}}
    spec = type(spec).model_validate({**spec.to_json(), "data": data})
    loaded = load_dataset(table, spec.data)
    prepared = prepare(spec, loaded, loaded.parts.train, name="m", seed=0)
    assert isinstance(prepared, PreparedTrees)
    assert len(prepared.means.blocks) == 3, "the category of each row of a window"


def signature(window: dict[str, Any] | None) -> Signature:
    tensor = TensorSpec(name="x", dtype="float32", shape=(2,))
    columns = (InputColumn(name="power", type="number"),)
    input_window = (
        None if window is None else InputWindow.model_validate({"time": "hour", "horizon": 0, **window})
    )
    return Signature(inputs=(tensor,), outputs=(tensor,), columns=columns, window=input_window)


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ({"rows": 5}, {"rows": 5}, ""),
        ({"rows": 5}, {"rows": 3}, ""),
        ({"rows": 3}, {"rows": 5}, "a window had 3 rows, has 5"),
        ({"rows": 3}, {"rows": 3, "horizon": 1}, "the predicted row was 0 rows after the window, is 1"),
        ({"rows": 3}, None, "an instance was a window of rows, is one row"),
        (None, {"rows": 3}, "an instance was one row, is a window of rows"),
        (None, None, ""),
    ],
)
def test_a_version_that_refuses_or_misreads_the_champions_windows_is_not_compatible(
    old: dict[str, Any] | None, new: dict[str, Any] | None, problem: str
) -> None:
    outcome = signature_gate(signature(new), signature(old))
    assert outcome.state == ("failed" if problem else "passed")
    assert (outcome.detail or "").startswith(problem)
