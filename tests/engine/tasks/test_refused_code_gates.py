"""Model processes that answer wrongly, hang or are not comparable."""

import json
import socket
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jobs.spec.signature import Signature
from tests.engine.processes.test_gates_of_code import WINE, Setting, judged, judged_by
from tests.engine.tasks.model_processes import (
    answering,
    own_process,
    probabilities,
    running,
    sending,
)
from workers.engine.arrays import Array
from workers.engine.data.store import file_digest
from workers.features.files import MEMBER
from workers.model_process import client

AFTER_METRIC = ["metric", "better_than_baseline", "finite", "batch_invariance", "latency"]


@pytest.fixture(scope="module")
def setting(tmp_path_factory: pytest.TempPathFactory) -> Setting:
    return Setting(tmp_path_factory.mktemp("wine"))


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
        columns = [{**column, "name": f"other {column['name']}"} for column in setting.registered["columns"]]
        changed = {"challenger_signature": {**setting.registered, "columns": columns}}
        gates = judged(task.model_copy(update=changed))
    assert "not those of the pipeline" in gates["loads"]["detail"]


def with_targets(model: Path, folder: Path, column: str = "cultivar") -> Path:
    """Copy a model file; its pipeline has `column`, the target, in place of the last column."""
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
    """The pipeline is in the model file, which user code has written."""
    path = with_targets(setting.model, tmp_path)
    columns = [*setting.registered["columns"][:-1], {"name": "cultivar", "type": "category"}]
    overrides = {name: str(path), f"{name}_signature": {**setting.registered, "columns": columns}}
    if name == "challenger":
        overrides["challenger_digest"] = file_digest(path)

    def answer(tensors: Sequence[Array]) -> list[Array]:
        return [np.eye(3, dtype=np.float32)[tensors[0][:, -1].astype(int) - 2]]

    with running(answering(WINE, answer), tmp_path, path, name=name) as model:
        gates = judged(setting.task(tmp_path).model_copy(update={**overrides, "models": (model,)}))
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
