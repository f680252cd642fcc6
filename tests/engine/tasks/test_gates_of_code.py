"""Gates of versions that need code: their processes send predictions, of which nothing is trusted."""

import json
import socket
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jobs.kinds.gate.payload import GateTask
from jobs.spec.signature import Signature
from tests.engine.making import ArtifactReport, dataset_file, spec_for, train_member
from tests.engine.tasks.model_processes import (
    Process,
    answering,
    own_process,
    probabilities,
    program,
    running,
    sending,
)
from tests.own_layers import SCALED, save_with_layer
from tests.present import present
from workers.engine.arrays import Array
from workers.engine.data.dataset import load_dataset
from workers.engine.data.store import file_digest
from workers.engine.tasks import gate
from workers.engine.tasks.judged_models import LoadedModel
from workers.features.files import MEMBER
from workers.model_process import client

Gates = dict[str, dict[str, Any]]

AFTER_METRIC = ["metric", "better_than_baseline", "finite", "batch_invariance", "latency"]
WINE = Signature.model_validate(
    {
        "inputs": [{"name": "input", "dtype": "float32", "shape": [13]}],
        "outputs": [{"name": "output", "dtype": "float32", "shape": [3]}],
    }
)


class Setting:
    """A trained version of built-in layers with its data. Its gates are those of one that needs code."""

    def __init__(self, folder: Path) -> None:
        self.file, self.spec = dataset_file(folder, "wine"), spec_for("wine")
        self.model = Path(train_member(folder, "good", self.spec, self.file).model)
        self.dataset = load_dataset(self.file, present(self.spec.data))
        self.registered = LoadedModel(self.model, folder).signature.model_dump(mode="json")

    def task(self, folder: Path, **more: Any) -> GateTask:
        return GateTask(
            folder=str(folder), challenger=str(self.model), challenger_digest=file_digest(self.model),
            challenger_signature=self.registered, dataset=self.file, spec=self.spec, **more,
        )  # fmt: skip


@pytest.fixture(scope="module")
def setting(tmp_path_factory: pytest.TempPathFactory) -> Setting:
    return Setting(tmp_path_factory.mktemp("wine"))


def judged(task: GateTask) -> Gates:
    result = gate.run(task, ArtifactReport(Path(task.folder)))
    json.dumps(result, allow_nan=False)
    return {each["name"]: each for each in result["gates"]}


def judged_by(process: Process, setting: Setting, folder: Path, ended: str = "its process ended") -> Gates:
    with running(process, folder, setting.model, ended=ended) as model:
        return judged(setting.task(folder, models=(model,)))


def numbers_in(gates: Gates) -> dict[tuple[str, str], float]:
    names = ("metric", "better_than_baseline", "finite")
    return {
        (name, key): value
        for name in names
        for key, value in gates[name].items()
        if isinstance(value, int | float)
    }


def test_an_honest_version_has_the_same_numbers_as_without_a_sandbox(
    setting: Setting, tmp_path: Path
) -> None:
    champion = {"champion": str(setting.model), "champion_signature": setting.registered}
    before = judged(setting.task(tmp_path, **champion))
    with running(own_process, tmp_path, setting.model) as model:
        after = judged(setting.task(tmp_path, models=(model,), **champion))
    assert {gate["state"] for gate in after.values()} == {"passed"}
    assert numbers_in(after) == pytest.approx(numbers_in(before), rel=1e-6)
    assert "in a sandbox" in after["loads"]["detail"]
    assert "measured from outside" in after["latency"]["detail"]


HOSTILE = (
    SCALED
    + """
import sys
import numpy as np
from workers.engine.evaluation import evaluate, gate_metrics, gates
from workers.engine.tasks import gate, judged_models

for module in (evaluate, gate_metrics, gates, gate, judged_models):
    for name, value in vars(module).items():
        if callable(value) and getattr(value, "__module__", "").startswith("workers."):
            setattr(module, name, lambda *_, **__: 1.0)
keras.metrics.Accuracy = keras.metrics.SparseCategoricalAccuracy = lambda *_, **__: 1.0
np.mean = np.isfinite = np.array_equal = lambda *_, **__: True
print("patched", "keras" in sys.modules)
"""
)


def test_code_that_changes_metrics_and_gates_changes_those_of_its_own_process_only(
    setting: Setting, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = save_with_layer(tmp_path, SCALED, "Scaled", shape=(13,), units=3)
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "model.py").write_text(HOSTILE)
    changed = {"challenger": str(path), "challenger_digest": file_digest(path), "challenger_signature": {}}
    task = setting.task(tmp_path).model_copy(update=changed)
    with running(program(tmp_path / "code"), tmp_path, path) as model:
        gates = judged(task.model_copy(update={"models": (model,)}))
    assert "patched True" in capfd.readouterr().out
    assert gates["loads"]["state"] == "passed", gates["loads"]["detail"]
    # It was not trained.
    assert gates["metric"]["value"] < 0.9
    assert gates["better_than_baseline"]["state"] == "failed"


def test_rows_arrive_in_an_order_that_tells_nothing_of_their_targets(
    setting: Setting, tmp_path: Path
) -> None:
    rows: dict[str, list[Array]] = {}

    def remembering(name: str) -> Process:
        def answer(tensors: Sequence[Array]) -> list[Array]:
            rows.setdefault(name, []).append(np.array(tensors[0]))
            return [probabilities(len(tensors[0]), 3)]

        return answering(WINE, answer)

    champion = {"champion": str(setting.model)}
    with (
        running(remembering("challenger"), tmp_path, setting.model) as ours,
        running(remembering("champion"), tmp_path, setting.model, name="champion") as theirs,
    ):
        judged(setting.task(tmp_path, models=(ours, theirs), **champion))
    test = setting.dataset.x[setting.dataset.parts.test].astype(np.float32)
    ours_all, theirs_all = (np.concatenate(rows[name])[: len(test)] for name in ("challenger", "champion"))
    assert np.array_equal(ours_all, theirs_all)
    assert not np.array_equal(ours_all, test)
    assert sorted(map(tuple, ours_all)) == sorted(map(tuple, test))


def test_predictions_are_assigned_to_their_rows(setting: Setting, tmp_path: Path) -> None:
    """A model that knows the target of each row would have an accuracy of 1 in any order."""
    known = {
        row.tobytes(): int(target)
        for row, target in zip(setting.dataset.x[:].astype(np.float32), setting.dataset.y, strict=True)
    }

    def answer(tensors: Sequence[Array]) -> list[Array]:
        return [np.stack([np.eye(3, dtype=np.float32)[known.get(row.tobytes(), 0)] for row in tensors[0]])]

    gates = judged_by(answering(WINE, answer), setting, tmp_path)
    assert gates["metric"]["value"] == 1.0


@pytest.mark.parametrize(
    ("answer", "cause"),
    [
        (lambda _: [probabilities(1_000_000, 3)], r"'output' of shape [1000000, 3] instead of [36, 3]"),
        (lambda t: [probabilities(len(t[0]), 4)], "of shape [36, 4]"),
        (lambda t: [np.ones(len(t[0]), np.float32)], "of shape [36]"),
        (lambda t: [], "0 outputs instead of 1"),
        (lambda t: [probabilities(len(t[0]), 3)] * 2, "2 outputs instead of 1"),
        (lambda t: [probabilities(len(t[0]), 3).astype("float64")], "of type float64 instead of float32"),
        (lambda t: [np.full((len(t[0]), 3), b"1.0")], "of type |S3"),
        (lambda t: None, "ended with status 0"),
    ],
)
def test_a_bad_answer_fails_the_gates_with_its_cause(
    answer: Any, cause: str, setting: Setting, tmp_path: Path
) -> None:
    gates = judged_by(answering(WINE, answer), setting, tmp_path, ended="its process ended with status 0")
    assert (gates["loads"]["state"], gates["digest"]["state"]) == ("passed", "passed")
    for name in AFTER_METRIC:
        assert gates[name]["state"] == "failed"
        assert cause in gates[name]["detail"]


def test_predictions_that_are_no_numbers_fail_as_those_of_other_versions(
    setting: Setting, tmp_path: Path
) -> None:
    gates = judged_by(
        answering(WINE, lambda t: [np.full((len(t[0]), 3), np.nan, np.float32)]), setting, tmp_path
    )
    assert gates["finite"]["state"] == gates["better_than_baseline"]["state"] == "failed"


def test_a_process_that_hangs_fails_the_gates(
    setting: Setting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "BATCH_SECONDS", 0.2)
    released = []

    def hang(connection: socket.socket) -> None:
        def wait(_: Sequence[Array]) -> None:
            released.append(connection.recv(1))

        answering(WINE, wait)(connection)

    gates = judged_by(hang, setting, tmp_path)
    assert "took more than" in gates["metric"]["detail"]
    assert released


@pytest.mark.parametrize(
    ("process", "cause"),
    [
        (lambda connection: None, "used more than 512 MiB"),
        (sending(b"\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00x"), "invalid frame"),
        (sending(b"\xff" * 12), "invalid frame"),
        (answering(WINE.model_copy(update={"outputs": ()}), lambda t: []), "invalid signature"),
        (
            answering(WINE.model_copy(update={"outputs": WINE.inputs}), lambda t: []),
            "another signature",
        ),
    ],
)
def test_a_version_that_cannot_be_loaded_names_the_cause(
    process: Any, cause: str, setting: Setting, tmp_path: Path
) -> None:
    gates = judged_by(process, setting, tmp_path, ended="its processes used more than 512 MiB")
    assert gates["loads"]["state"] == "failed"
    assert cause in gates["loads"]["detail"]
    assert {gates[name]["state"] for name in AFTER_METRIC} == {"not_evaluated"}


def test_columns_that_are_not_those_of_the_file_are_refused(setting: Setting, tmp_path: Path) -> None:
    with running(answering(WINE, lambda t: []), tmp_path, setting.model) as model:
        task = setting.task(tmp_path, models=(model,))
        columns = [{**each, "name": f"other {each['name']}"} for each in setting.registered["columns"]]
        changed = {"challenger_signature": {**setting.registered, "columns": columns}}
        gates = judged(task.model_copy(update=changed))
    assert "not those of the pipeline" in gates["loads"]["detail"]


def with_targets(model: Path, folder: Path, column: str = "cultivar") -> Path:
    """Return a copy of a model file whose pipeline has `column`, the target, in place of its last column."""
    path = folder / "taking.keras"
    words = {"words": ["class_0", "class_1", "class_2"], "size": 5}
    with zipfile.ZipFile(model) as source, zipfile.ZipFile(path, "w") as archive:
        for name in source.namelist():
            content = source.read(name)
            if name == MEMBER:
                features = json.loads(content)
                features["columns"][-1] = {"column": column, "type": "category", "kind": "index", **words}
                content = json.dumps(features).encode()
            archive.writestr(name, content)
    return path


def test_an_input_of_any_size_does_not_keep_a_version_from_its_test_data(
    setting: Setting, tmp_path: Path
) -> None:
    """Its gates would not be evaluated, which an approver may accept."""
    path, inputs = tmp_path / "plain.keras", [{"name": "input", "dtype": "float32", "shape": [None]}]
    with zipfile.ZipFile(setting.model) as source, zipfile.ZipFile(path, "w") as archive:
        for name in source.namelist():
            if name != MEMBER:
                archive.writestr(name, source.read(name))
    signature = Signature.model_validate({**WINE.model_dump(), "inputs": inputs})
    process = answering(signature, lambda tensors: [probabilities(len(tensors[0]), 3)])
    with running(process, tmp_path, path) as model:
        changed = {"challenger": str(path), "challenger_signature": signature.model_dump(mode="json")}
        gates = judged(setting.task(tmp_path).model_copy(update={**changed, "models": (model,)}))
    assert gates["better_than_baseline"]["state"] == "failed"


@pytest.mark.parametrize("name", ["challenger", "champion"])
def test_a_version_does_not_get_the_targets_as_a_feature(name: str, setting: Setting, tmp_path: Path) -> None:
    """The pipeline is in the model file, which code of users has written."""
    path = with_targets(setting.model, tmp_path)
    columns = [*setting.registered["columns"][:-1], {"name": "cultivar", "type": "category"}]
    given = {name: str(path), f"{name}_signature": {**setting.registered, "columns": columns}}
    if name == "challenger":
        given["challenger_digest"] = file_digest(path)

    def answer(tensors: Sequence[Array]) -> list[Array]:
        return [np.eye(3, dtype=np.float32)[tensors[0][:, -1].astype(int) - 2]]

    with running(answering(WINE, answer), tmp_path, path, name=name) as model:
        gates = judged(setting.task(tmp_path).model_copy(update={**given, "models": (model,)}))
    assert gates["metric"]["state"] == ("failed" if name == "challenger" else "not_evaluated")
    assert "its pipeline takes the target 'cultivar'" in gates["metric"]["detail"]


def test_packages_that_cannot_be_installed_are_the_cause(setting: Setting, tmp_path: Path) -> None:
    with running(own_process, tmp_path, setting.model) as model:
        broken = model.model_copy(update={"failure": "no package einops", "socket": ""})
        gates = judged(setting.task(tmp_path, models=(broken,)))
        assert "no package einops" in gates["loads"]["detail"]
        # The thread waits for a task.
        client.ModelClient.connect(Path(model.socket)).close()


def test_a_champion_that_does_not_answer_is_not_compared(setting: Setting, tmp_path: Path) -> None:
    process = answering(WINE, lambda t: None)
    with running(process, tmp_path, setting.model, name="champion", ended="it ended by SIGSEGV") as model:
        gates = judged(setting.task(tmp_path, champion=str(setting.model), models=(model,)))
    assert gates["metric"]["state"] == "not_evaluated"
    assert "it ended by SIGSEGV" in gates["metric"]["detail"]
    assert gates["better_than_baseline"]["state"] == "passed"


def test_a_pipeline_with_a_column_that_the_data_lack_fails_the_gates(
    setting: Setting, tmp_path: Path
) -> None:
    """Without test data they would not be evaluated, which an approver may accept."""
    path = with_targets(setting.model, tmp_path, "elsewhere")
    columns = [*setting.registered["columns"][:-1], {"name": "elsewhere", "type": "category"}]
    changed = {"challenger": str(path), "challenger_signature": {**setting.registered, "columns": columns}}
    with running(answering(WINE, lambda tensors: []), tmp_path, path) as model:
        gates = judged(setting.task(tmp_path).model_copy(update={**changed, "models": (model,)}))
    assert {gates[name]["state"] for name in ("metric", "better_than_baseline", "finite")} == {"failed"}
    assert "'elsewhere'" in gates["metric"]["detail"]
