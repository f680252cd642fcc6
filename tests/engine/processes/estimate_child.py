"""Runs in its own process with 8 simulated devices: estimates and trains a model on 2 × 4, and compares."""

import json
import resource
import sys
from pathlib import Path
from typing import Any

from tests.present import present
from workers.runner.environment import Environment
from workers.runner.libraries import import_keras

Environment(threads=1, platform="cpu", simulated_devices=8).apply()
import_keras()

import jax  # noqa: E402  the environment comes first
import numpy as np  # noqa: E402

from jobs.kinds.mesh_estimate.payload import MeshEstimateTask  # noqa: E402
from jobs.spec.plan.layout_rules import suggest_layout  # noqa: E402
from jobs.spec.plan.variables import variables  # noqa: E402
from jobs.spec.sections.mesh import MeshSpec  # noqa: E402
from tests import own_code  # noqa: E402
from tests.engine.helpers import RecordingReport, profiled, spec_of  # noqa: E402
from workers.engine.data.dataset import load_dataset  # noqa: E402
from workers.engine.models.mesh import use_mesh  # noqa: E402
from workers.engine.tasks import mesh_estimate  # noqa: E402
from workers.engine.training.prepare import prepare  # noqa: E402

MESH: dict[str, Any] = {"shape": [2, 4], "axis_names": ["data", "model"], "simulate": 8}
DEVICE = 40_000_000
ROWS = 512
STEPS = 3
CODE = (
    own_code.IMPORTS
    + """
class Net(keras.Model):
    def __init__(self):
        super().__init__()
        self.hidden = layers.Dense(64, activation="relu", name="hidden")
        self.classes = layers.Dense(3, activation="softmax", name="classes")

    def call(self, x):
        return self.classes(self.hidden(x))


def build_model(hp):
    model = Net()
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model
"""
)


def main(folder: Path) -> None:
    """Print the estimate of a model, the bytes that its training holds, and an estimate of own code."""
    file = profiled(folder / "profile", bundled="digits")
    spec = spec_of("d", args={"units": 256}, fit={"batch_size": ROWS}, mesh=MESH)
    dataset = load_dataset(file, present(spec.data), spec.model.info.texts)
    layout = suggest_layout(MeshSpec.model_validate(MESH), variables(spec.model, dataset.profile))
    mesh = {**MESH, "layout": [rule.model_dump() for rule in layout]}
    spec = spec_of("d", args={"units": 256}, fit={"batch_size": ROWS}, mesh=mesh)
    task = MeshEstimateTask(folder=str(folder), spec=spec, compiles=True, device_bytes=DEVICE, dataset=file)
    report = RecordingReport(folder)
    estimate = mesh_estimate.run(task, report)
    result = {
        "estimate": estimate,
        "left": sum(array.nbytes for array in jax.live_arrays()),
        "progress": [args for args, _ in report.of("progress")],
        "real": trained(spec, dataset),
        "code": estimated_code(folder, profiled(folder / "iris", bundled="iris")),
    }
    sys.stdout.write(json.dumps(result) + "\n")


def trained(spec: Any, dataset: Any) -> dict[str, Any]:
    """Train some steps; return what each device holds of the state, and how much the process has grown."""
    prepared = prepare(spec, dataset, dataset.parts.train, name="m", seed=3)
    model = prepared.model
    model.optimizer.build(model.trainable_variables)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    x, y = dataset.take(dataset.parts.train)
    model.fit(x[:ROWS].astype(np.float32), y[:ROWS], batch_size=ROWS, epochs=STEPS, verbose=0)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    weights = [v.value for v in model.weights]
    use_mesh(None, [], 1)
    return {
        "weights": held(weights),
        "optimizer": held([v.value for v in model.optimizer.variables]),
        "paths": sorted([v.path, list(v.shape), str(v.dtype)] for v in model.weights),
        "grown": grown,
    }


def held(arrays: list[Any]) -> list[int]:
    """Return the bytes on each device."""
    sizes: dict[int, int] = {device.id: 0 for device in jax.devices()}
    for array in arrays:
        for shard in array.addressable_shards:
            sizes[shard.device.id] += shard.data.nbytes
    return list(sizes.values())


def estimated_code(folder: Path, file: Any) -> dict[str, Any]:
    """Estimate a class of own code whose first layer is divided, on 2 × 4 devices."""
    code = own_code.code_in(folder / "code", CODE)
    layout = [{"match": ".*hidden/kernel", "axes": [None, "model"]}]
    body = {
        "data": {"dataset": "iris"},
        "model": {"kind": "code", "digest": code.digest, "entry": "build_model"},
        "fit": {"batch_size": 64},
        "mesh": {**MESH, "layout": layout},
    }
    task = MeshEstimateTask.model_validate(
        {"folder": str(folder), "spec": body, "compiles": True, "dataset": file.model_dump(), "code": code}
    )
    return mesh_estimate.run(task, RecordingReport(folder))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
