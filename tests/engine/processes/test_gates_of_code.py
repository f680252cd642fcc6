"""Gates for versions that need code: their processes send predictions, which are not trusted."""

import json
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
)
from tests.own_layers import SCALED, save_with_layer
from tests.present import present
from workers.engine.arrays import Array
from workers.engine.data.dataset import load_dataset
from workers.engine.data.store import file_digest
from workers.engine.tasks import gate
from workers.engine.tasks.judged_models import LoadedModel

Gates = dict[str, dict[str, Any]]

WINE = Signature.model_validate(
    {
        "inputs": [{"name": "input", "dtype": "float32", "shape": [13]}],
        "outputs": [{"name": "output", "dtype": "float32", "shape": [3]}],
    }
)


class Setting:
    """A trained version with built-in layers and its data. Its gates are those for needed code."""

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
    return {gate_result["name"]: gate_result for gate_result in result["gates"]}


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
    """A model that knows each row's target would have accuracy 1 in any order."""
    classes = {
        row.tobytes(): int(target)
        for row, target in zip(setting.dataset.x[:].astype(np.float32), setting.dataset.y, strict=True)
    }

    def answer(tensors: Sequence[Array]) -> list[Array]:
        return [np.stack([np.eye(3, dtype=np.float32)[classes.get(row.tobytes(), 0)] for row in tensors[0]])]

    gates = judged_by(answering(WINE, answer), setting, tmp_path)
    assert gates["metric"]["value"] == 1.0
