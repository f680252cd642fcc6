"""Windows over a table: their rows, the rows that they must not have, and the models that read them."""

import tracemalloc
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jobs.messages.task import DatasetFile
from jobs.spec.data.encoding import width_in_memory
from jobs.spec.data.profile import Profile
from jobs.spec.sections.data import DataSpec, Split, Window
from jobs.spec.signature import InputWindow
from tests.engine.helpers import csv_file, profiled, spec_of
from tests.engine.making import train_member
from tests.engine.sequences import HOURS, SENSORS, sensors
from tests.present import present
from workers.engine.data import windows
from workers.engine.data.dataset import Dataset, load_dataset
from workers.engine.data.split import Parts, split
from workers.engine.data.tabular import encoded_bytes
from workers.engine.data.windows import windows_of, windows_over, with_windows
from workers.engine.errors import BadData, BadSpec
from workers.features.files import read_features
from workers.features.pipeline import Pipeline


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> DatasetFile:
    return sensors(tmp_path_factory.mktemp("sensors"))


def spec_with(window: dict[str, Any], template: str = "sequence", split: Any = None, **more: Any) -> Any:
    base = spec_of("d", template, **more)
    data = {"dataset": "d", "window": window, "split": split or {}}
    return type(base).model_validate({**base.to_json(), "data": data})


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
    input_windows = windows_over(columns, InputWindow(rows=2, horizon=0, time="t"))
    assert input_windows.of(np.array([0, 2, 3])).tolist() == [[3, 0], [1, 2], [2, 3]]
    assert input_windows.exists.tolist() == [True, False, True, True]


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
        input_windows = windows_over(columns, window)
        with_windows(Parts(*np.split(chosen, [3000, 3500])), input_windows)
        window_rows = windows_of(features, input_windows, chosen)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    counted = 4 * count * width_in_memory(width, Window(rows=rows))
    assert peak < counted - features.nbytes + 100_000, "row numbers of all windows would have 3 MB"
    member = columns["t"].argsort()
    member = member[columns["g"][member] == 1]
    assert not input_windows.exists[member[:rows]].any() and input_windows.exists[member[rows:]].all()
    for place in (rows, rows + 1, len(member) - 1):
        expected = features[member[place - rows : place]]
        assert window_rows[member[place]].tobytes() == expected.tobytes()
    assert not input_windows.of(np.flatnonzero(~input_windows.exists)).any()


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
    dataset = load_dataset(file, data)
    assert dataset.parts.train.tolist() == [3, 4, 5, 6], "the window of row 2 has row 1 of the test"
    assert 1 in dataset.parts.test


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
    data_spec = DataSpec.model_validate(data)
    room = encoded_bytes(Profile.model_validate(file.profile), data_spec)
    assert room < 3000 < Path(file.path).stat().st_size
    whole, loaded = load_dataset(file, data_spec), load_dataset(file, data_spec, in_memory_bytes=room)
    for dataset in (loaded, loaded.fitted_on(loaded.parts.train[:20])):
        assert isinstance(dataset.x, np.ndarray), "trees and windows need this"
    assert loaded.x[:].tobytes() == whole.x[:].tobytes()
    rows = loaded.parts.test
    assert loaded.rows_for(whole.features, rows)[:].tobytes() == whole.x[rows].tobytes()
    with pytest.raises(BadSpec, match="all windows are in memory") if window else nullcontext():
        assert load_dataset(file, data_spec, in_memory_bytes=room - 1).is_streamed
