"""Windows over a table: their rows, the rows that they must not have, and the models that read them."""

import tracemalloc
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jobs.messages.task import DatasetFile
from jobs.spec.checks.data import problems
from jobs.spec.data.encoding import encoded, width_in_memory
from jobs.spec.data.profile import Profile
from jobs.spec.plan.variables import variables
from jobs.spec.sections.data import DataSpec, Split, Window
from jobs.spec.signature import InputColumn, InputWindow, Signature, TensorSpec
from tests.engine.helpers import csv_file, profiled, spec_of
from tests.engine.making import train_member
from tests.engine.sequences import HOURS, SENSORS, sensors
from tests.engine.small_training import train_on
from tests.present import present
from workers.engine.data import windows
from workers.engine.data.dataset import Dataset, load_dataset
from workers.engine.data.folds import rows_for
from workers.engine.data.split import Parts, split
from workers.engine.data.tabular import encoded_bytes
from workers.engine.data.windows import windows_of, windows_over, with_windows
from workers.engine.errors import BadData, BadSpec
from workers.engine.evaluation.signature_gate import signature_gate
from workers.engine.models.build import build
from workers.engine.models.scaling import measure_scaling
from workers.engine.training.trees import PreparedTrees
from workers.features.files import read_features
from workers.features.pipeline import Pipeline

FIT = {"epochs": 20, "batch_size": 16, "learning_rate": 0.03}


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> DatasetFile:
    return sensors(tmp_path_factory.mktemp("sensors"))


def spec_with(window: dict[str, Any], template: str = "sequence", split: Any = None, **more: Any) -> Any:
    found = spec_of("d", template, **more)
    data = {"dataset": "d", "window": window, "split": split or {}}
    return type(found).model_validate({**found.to_json(), "data": data})


def load(table: DatasetFile, window: dict[str, Any], **more: Any) -> Dataset:
    return load_dataset(table, spec_with(window, **more).data)


def test_a_window_has_the_rows_of_one_group_before_its_target_in_the_order_of_time(
    table: DatasetFile,
) -> None:
    loaded = load(table, {"rows": 3, "horizon": 2})
    windows, columns = present(present(loaded.table).windows), present(loaded.table).columns
    for row in np.concatenate(loaded.parts):
        inside = windows.of(row)
        assert {*columns["sensor"][inside]} == {columns["sensor"][row]}
        last = columns["hour"][row] - 2
        assert columns["hour"][inside].tolist() == [last - 2, last - 1, last]
    assert windows.exists.sum() == len(SENSORS) * (HOURS - 4), "each sensor begins with four rows without one"


def test_rows_of_equal_times_keep_the_order_of_the_file() -> None:
    columns = {"t": np.array([2, 1, 1, 1])}
    found = windows_over(columns, InputWindow(rows=2, horizon=0, time="t"))
    assert found.of(np.array([0, 2, 3])).tolist() == [[3, 0], [1, 2], [2, 3]]
    assert found.exists.tolist() == [True, False, True, True]


def test_the_columns_of_windows_and_splits_are_read_once() -> None:
    read: list[str] = []

    class Columns(dict[str, np.ndarray]):
        def __getitem__(self, name: str) -> np.ndarray:
            read.append(name)
            return super().__getitem__(name)

    columns = Columns(t=np.arange(9), g=np.arange(9) % 3)
    windows_over(columns, InputWindow(rows=2, horizon=0, time="t", group="g"))
    split(np.zeros(9), columns, "binary", Split(time="t"))
    assert read == ["t", "g", "t"]


def test_the_memory_of_windows_is_what_is_compared_with_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    count, rows, width = 4000, 100, 2
    # Neighbours of the file are in another order of time.
    columns = {"t": np.arange(count) ^ 5, "g": np.arange(count) // 3 % 2}
    features = np.random.default_rng(1).random((count, width), np.float32)
    window = InputWindow(rows=rows, horizon=1, time="t", group="g")
    monkeypatch.setattr(windows, "PART_CELLS", 10 * rows)
    chosen = np.arange(count)
    tracemalloc.start()
    try:
        found = windows_over(columns, window)
        with_windows(Parts(*np.split(chosen, [3000, 3500])), found)
        made = windows_of(features, found, chosen)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    counted = 4 * count * width_in_memory(width, Window(rows=rows))
    assert peak < counted - features.nbytes + 100_000, "row numbers of all windows would have 3 MB"
    member = columns["t"].argsort()
    member = member[columns["g"][member] == 1]
    assert not found.exists[member[:rows]].any() and found.exists[member[rows:]].all()
    for place in (rows, rows + 1, len(member) - 1):
        expected = features[member[place - rows : place]]
        assert made[member[place]].tobytes() == expected.tobytes()
    assert not found.of(np.flatnonzero(~found.exists)).any()


@pytest.mark.parametrize("split", [{}, {"group": "sensor"}])
def test_no_window_has_a_row_of_a_later_part(table: DatasetFile, split: dict[str, Any]) -> None:
    loaded = load(table, {"rows": 4, "horizon": 1}, split=split)
    part_of_row = np.full(loaded.profile.rows, 3)
    whole = load_dataset(table, present(spec_of("d", split=split).data)).parts
    for number, rows in enumerate(whole):
        part_of_row[rows] = number
    for number, rows in enumerate(loaded.parts):
        assert part_of_row[present(present(loaded.table).windows).of(rows)].max() <= number
    test_inputs = part_of_row[present(present(loaded.table).windows).of(loaded.parts.test)]
    # The past is known when a model is used, but another sensor is not.
    assert (test_inputs.min() < 2) == (split == {})


def test_a_window_of_a_named_part_that_reaches_into_a_later_part_is_left_out(tmp_path: Path) -> None:
    parts = ["train", "test", *["train"] * 5, *["validation"] * 3, *["test"] * 3]
    text = "t,part,v,y\n" + "".join(f"{i},{part},{i * i % 7},{i % 2}\n" for i, part in enumerate(parts))
    file = profiled(tmp_path / "p", source="csv", path=csv_file(tmp_path, text), target="y")
    spec = spec_with({"rows": 2, "time": "t"}, split={"column": "part"})
    data = spec.data.model_copy(update={"features": ("v",)})
    found = load_dataset(file, data)
    assert found.parts.train.tolist() == [3, 4, 5, 6], "the window of row 2 has row 1 of the test"
    assert 1 in found.parts.test


def test_the_target_is_no_input(table: DatasetFile) -> None:
    loaded = load(table, {"rows": 3})
    assert loaded.profile.features == ("power", "mode")
    stored = present(loaded.table)
    columns = {name: column[:] for name, column in stored.columns.items()}
    changed = {**columns, "warm": columns["warm"][::-1].copy()}
    assert stored.pipeline.of_stored(changed).tobytes() == stored.pipeline.of_stored(columns).tobytes()


def test_stored_windows_and_those_of_a_request_give_equal_bits(tmp_path: Path, table: DatasetFile) -> None:
    spec = spec_with({"rows": 3, "horizon": 1}, template="mlp")
    loaded = load_dataset(table, spec.data)
    member = train_member(tmp_path, "m", spec, table)
    features = present(read_features(Path(member.model)))
    assert features == loaded.features
    assert features.input_shape == loaded.profile.input_shape == loaded.x.shape[1:]
    rows = loaded.parts.test[:5]
    values = {name: present(loaded.table).columns[name][:].tolist() for name in Pipeline(features).columns}
    sent = [
        [{name: values[name][i] for name in values} for i in present(present(loaded.table).windows).of(row)]
        for row in rows
    ]
    x = Pipeline(features).of_windows(sent)
    assert x.tobytes() == loaded.x[rows].tobytes() == loaded.rows_for(features, rows)[:].tobytes()
    more = [[{"power": 9.0}, *window] for window in sent]
    assert Pipeline(features).of_windows(more).tobytes() == x.tobytes(), "the last rows are used"


def test_a_row_without_a_window_is_an_error_for_a_model_that_needs_one(table: DatasetFile) -> None:
    loaded = load(table, {"rows": 3})
    single = load_dataset(table, present(spec_of("d").data))
    first = np.flatnonzero(~present(present(loaded.table).windows).exists)
    with pytest.raises(BadData, match="takes windows of 3 rows, and row"):
        single.rows_for(loaded.features, first[:1])


def test_windows_need_room_in_memory_and_are_read_of_a_table_that_is_streamed(table: DatasetFile) -> None:
    spec = spec_with({"rows": 3})
    with pytest.raises(
        BadSpec, match=r"all windows are in memory, with .* bytes, and this run has room for 9;"
    ):
        load_dataset(table, spec.data, in_memory_bytes=9)
    loaded, streamed = (
        load_dataset(table, spec.data),
        load_dataset(table, present(spec_of("d").data), in_memory_bytes=9),
    )
    assert streamed.is_streamed
    rows = loaded.parts.test
    assert streamed.rows_for(loaded.features, rows)[:].tobytes() == loaded.x[rows].tobytes()


@pytest.mark.parametrize("window", [{"rows": 3}, None])
def test_ignored_columns_do_not_keep_the_features_out_of_memory(tmp_path: Path, window: Any) -> None:
    lines = "".join(f"{i},{i * i % 7},{'long ' * 50}{i},{i % 2}\n" for i in range(60))
    file = profiled(tmp_path / "p", source="csv", path=csv_file(tmp_path, "t,v,note,y\n" + lines), target="y")
    data = {"dataset": "d", "window": window, "split": {"time": "t"}, "features": ["v"]}
    found = DataSpec.model_validate(data)
    room = encoded_bytes(Profile.model_validate(file.profile), found)
    assert room < 3000 < Path(file.path).stat().st_size
    whole, loaded = load_dataset(file, found), load_dataset(file, found, in_memory_bytes=room)
    for made in (loaded, loaded.fitted_on(loaded.parts.train[:20])):
        assert isinstance(made.x, np.ndarray), "trees and windows need this"
    assert loaded.x[:].tobytes() == whole.x[:].tobytes()
    rows = loaded.parts.test
    assert loaded.rows_for(whole.features, rows)[:].tobytes() == whole.x[rows].tobytes()
    with pytest.raises(BadSpec, match="all windows are in memory") if window else nullcontext():
        assert load_dataset(file, found, in_memory_bytes=room - 1).is_streamed


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
    found = {
        p.pointer: p.message
        for p in problems(spec_with(window, split=split), Profile.model_validate(table.profile))
    }
    assert message in found[pointer]


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
    made = None if window is None else InputWindow.model_validate({"time": "hour", "horizon": 0, **window})
    return Signature(inputs=(tensor,), outputs=(tensor,), columns=columns, window=made)


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
