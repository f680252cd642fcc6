"""Runs in its own process with 8 simulated devices: trains, saves and loads models divided over them.

Usage: `python -m tests.engine.processes.large_model_child COMMAND FOLDER`; its last line is the result.
"""

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from workers.runner.environment import Environment
from workers.runner.libraries import import_keras

Environment(threads=1, platform="cpu", simulated_devices=8).apply()
import_keras()

import keras  # noqa: E402  the environment comes first
import numpy as np  # noqa: E402

from jobs.kinds.gate.payload import GateTask  # noqa: E402
from jobs.kinds.register.payload import RegisterTask  # noqa: E402
from jobs.messages.task import DatasetFile  # noqa: E402
from jobs.messages.training import TrainTask  # noqa: E402
from jobs.spec.experiment import ExperimentSpec  # noqa: E402
from jobs.spec.sections.mesh import MeshSpec  # noqa: E402
from jobs.spec.sections.search import Objective  # noqa: E402
from tests.engine.helpers import RecordingReport, spec_of  # noqa: E402
from tests.engine.processes.live_bytes import LiveBytes  # noqa: E402
from tests.engine.small_training import blobs_file, train_on  # noqa: E402
from workers.engine.data.store import file_digest  # noqa: E402
from workers.engine.models.devices.loading import loading_on  # noqa: E402
from workers.engine.models.files import load_model, save_model  # noqa: E402
from workers.engine.models.mesh import use_mesh  # noqa: E402
from workers.engine.models.variables import held  # noqa: E402
from workers.engine.report import TaskInterrupted  # noqa: E402
from workers.engine.tasks import gate, register  # noqa: E402
from workers.engine.tasks import train as train_task  # noqa: E402
from workers.engine.training import checkpoint, training  # noqa: E402
from workers.engine.training.array_groups import read_group, write_group  # noqa: E402
from workers.serving.child.memory import return_unused  # noqa: E402

MESHES: dict[str, Any] = {
    "one": None,
    "mixed": {
        "shape": [2, 4], "axis_names": ["data", "model"], "simulate": 8,
        "layout": [
            {"match": "dense_./kernel", "axes": ["data", "model"]},
            {"match": "dense_./bias", "axes": ["model"]},
        ],
    },
    "columns": {
        "shape": [8], "axis_names": ["model"], "batch_axis": None, "simulate": 8,
        "layout": [{"match": "dense_./kernel", "axes": [None, "model"]}],
    },
}  # fmt: skip
SMALL: dict[str, Any] = {"args": {"units": 16, "layers": 2, "dropout": 0.2}}
LARGE: dict[str, Any] = {"units": 1024, "layers": 3, "dropout": 0.0}


class WatchedReport(RecordingReport):
    """Looks at each event."""

    def __init__(self, folder: Path, live: LiveBytes) -> None:
        super().__init__(folder)
        self._live = live

    def __getattr__(self, kind: str) -> Any:
        record = super().__getattr__(kind)

        def see_and_record(*arguments: Any, **named: Any) -> None:
            self._live.see(kind)
            record(*arguments, **named)

        return see_and_record


def train_largest(folder: Path) -> dict[str, Any]:
    """Train, save and evaluate a model whose weights no device has whole."""
    live = LiveBytes()
    task = task_of(folder, blobs_file(folder), LARGE)
    with live.watching():
        result = train_task.run(task, WatchedReport(folder, live))
    with loading_on(task.spec.mesh):
        model = load_model(folder / "model.keras", folder)
    kernel = model.get_layer("dense_2").kernel.value
    return {
        "most": live.most,
        "weights": result["bytes"],
        "metrics": result["metrics"],
        "shard": kernel.addressable_shards[0].data.shape,
        "has_distribution": keras.distribution.distribution() is not None,
    }


def judge_largest(folder: Path) -> dict[str, Any]:
    """Validate a version of the largest model, and evaluate its gates, as later steps do."""
    file = folder / "model.keras"
    digest = file_digest(file)
    training = task_of(folder, blobs_file(folder), LARGE)
    live = LiveBytes()
    place = folder / "later"
    place.mkdir()
    with live.watching():
        registered = register.run(
            RegisterTask(folder=str(place), model=str(file), digest=digest, mesh=training.spec.mesh),
            WatchedReport(place, live),
        )
        judged = gate.run(
            GateTask(
                folder=str(place), challenger=str(file), challenger_digest=digest, champion=str(file),
                challenger_signature=registered["signature"], champion_signature=registered["signature"],
                dataset=training.dataset, spec=training.spec,
            ),
            WatchedReport(place, live),
        )  # fmt: skip
    return {"most": live.most, "gates": judged["gates"], "metrics": judged["metrics"]}


def task_of(folder: Path, data: DatasetFile, args: dict[str, Any]) -> TrainTask:
    fit = {"epochs": 2, "batch_size": 16, "learning_rate": 0.01}
    spec = spec_of("blobs", mesh=MESHES["mixed"], args=args, fit=fit)
    return TrainTask(
        folder=str(folder), checkpoints=str(folder / "c"), spec=ExperimentSpec.model_validate(spec.to_json()),
        dataset=data, retrain=None, objective=Objective(metric="val_loss", direction="min"), model_name="m",
    )  # fmt: skip


def resume_everywhere(folder: Path) -> dict[str, Any]:
    """Pause trainings after their first epoch, and resume each on another mesh."""
    data = blobs_file(folder)
    found: dict[str, Any] = {"whole": {}, "pairs": {}}
    for name in ("one", "mixed"):
        whole = train_on(data, folder / f"whole-{name}", mesh=MESHES[name], **SMALL)
        found["whole"][name] = whole.result.history
    for first, then in (("mixed", "mixed"), ("mixed", "columns"), ("mixed", "one"), ("one", "mixed")):
        place = folder / f"{first}-{then}"
        with suppress(TaskInterrupted):
            train_on(data, place, mesh=MESHES[first], requests=["pause"], **SMALL)
        [paused] = checkpoint.list_committed(place)
        snapshot = checkpoint.read(paused, mapped=MESHES[then] is not None)
        done = train_on(data, place, mesh=MESHES[then], resume=snapshot, **SMALL)
        [(_, resumed)] = done.report.of("resumed")
        found["pairs"][f"{first}-{then}"] = {
            "history": done.result.history,
            "is_exact": resumed["saved"] == resumed["loaded"] != "",
            "left": [path.name for path in place.glob(".tmp-*")],
        }
    return found


def train_in_steps(folder: Path) -> dict[str, Any]:
    """Train with a checkpoint after each epoch, from the newest that is intact."""
    folder.mkdir(exist_ok=True)
    data, place = blobs_file(folder), folder / "c"
    newest = next(filter(checkpoint.is_intact, checkpoint.list_committed(place)), None)
    snapshot = None if newest is None else checkpoint.read(newest, mapped=True)
    done = train_on(
        data, place, mesh=MESHES["mixed"], requests=["checkpoint"] * 4, resume=snapshot,
        fence=1 if newest is None else 2, **SMALL,
    )  # fmt: skip
    return {
        "history": done.result.history,
        "resumed_after": None if snapshot is None else snapshot.state["epoch"],
        "left": [path.name for path in place.glob(".tmp-*")],
    }


def measure_host(folder: Path) -> dict[str, Any]:
    """Write and load a model of 160 MiB; return how much more memory this process had meanwhile."""
    folder.mkdir(exist_ok=True)
    mesh = MeshSpec.model_validate(MESHES["mixed"])
    use_mesh(mesh, None, 16)
    inputs = keras.Input((4,))
    hidden = keras.layers.Dense(4580, name="dense_1")(inputs)
    for i in (2, 3):
        hidden = keras.layers.Dense(4580, name=f"dense_{i}")(hidden)
    model = keras.Model(inputs, keras.layers.Dense(3, name="output")(hidden))
    warm_up(folder)
    size = sum(variable.value.nbytes for variable in model.variables)
    before = resident("VmRSS")
    with peak() as of_checkpoint:
        write_group(folder / "model.npz", held(model.variables))
    with peak() as of_file:
        save_model(model, folder / "model.keras")
    kept = resident("VmRSS") - before
    anonymous = resident("RssAnon")
    loaded = load_model(folder / "model.keras", folder)
    stored = read_group(folder / "model.npz", ["float32"] * len(model.variables), mapped=True)
    return_unused()
    return {
        "size": size,
        "checkpoint": of_checkpoint[0],
        "file": of_file[0],
        "kept": kept,
        "loaded": resident("RssAnon") - anonymous,
        "equal": all(
            np.array_equal(shard.data, values[shard.index])
            for variable, values in zip(loaded.variables, stored, strict=True)
            for shard in variable.value.addressable_shards
        ),
    }


def warm_up(folder: Path) -> None:
    """Save a small model first: imports and buffers take memory once."""
    inputs = keras.Input((8,))
    model = keras.Model(inputs, keras.layers.Dense(8, name="dense_1")(inputs))
    save_model(model, folder / "small.keras")
    load_model(folder / "small.keras", folder)
    write_group(folder / "small.npz", held(model.variables))


def save_as_keras(folder: Path) -> dict[str, Any]:
    """Save models of several types with and without blocks."""
    folder.mkdir(exist_ok=True)
    use_mesh(MeshSpec.model_validate(MESHES["mixed"]), None, 16)
    for policy in ("float32", "bfloat16", "mixed_float16"):
        inputs = keras.Input((8,))
        hidden = keras.layers.Dense(16, dtype=policy, name="dense_1")(inputs)
        normalized = keras.layers.BatchNormalization(dtype=policy, name="norm")(hidden)
        dropped = keras.layers.Dropout(0.5, seed=1, name="drop")(normalized)
        model = keras.Model(inputs, keras.layers.Dense(3, dtype=policy, name="output")(dropped), name="m")
        save_model(model, folder / f"{policy}-ours.keras")
        model.save(folder / f"{policy}-keras.keras")
    return {}


@contextmanager
def peak() -> Iterator[list[int]]:
    """Yield a list that gets the rise of this process' largest resident size."""
    found: list[int] = []
    Path("/proc/self/clear_refs").write_text("5")
    before = resident("VmRSS")
    yield found
    found.append(resident("VmHWM") - before)


def resident(field: str) -> int:
    """Return a size in `/proc/self/status` in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{field}:")) << 10


# Requests are served between epochs, however long the first batch takes to compile.
training.REQUEST_INTERVAL = float("inf")
COMMANDS: dict[str, Callable[[Path], dict[str, Any]]] = {
    "largest": train_largest,
    "later": judge_largest,
    "resume": resume_everywhere,
    "steps": train_in_steps,
    "host": measure_host,
    "save": save_as_keras,
}

if __name__ == "__main__":
    answer = COMMANDS[sys.argv[1]](Path(sys.argv[2]))
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()
    # Not the interpreter's end, which waits for the devices.
    os._exit(0)
