"""Runs in its own process with 4 simulated devices: trains with several meshes and prints the losses."""

import json
import sys
from pathlib import Path

from workers.runner.environment import Environment

Environment(threads=1, platform="cpu", simulated_devices=4).apply()

from tests.engine.helpers import RecordingReport, profiled, spec_of  # noqa: E402  the environment comes first
from workers.engine.data.dataset import load_dataset  # noqa: E402
from workers.engine.training.checkpointing import Checkpointer  # noqa: E402
from workers.engine.training.early_stopping import BestTracker  # noqa: E402
from workers.engine.training.plan import TrainingPlan  # noqa: E402
from workers.engine.training.prepare import prepare  # noqa: E402
from workers.engine.training.training import Training  # noqa: E402

RULES = [{"match": ".*/kernel", "axes": [None, "model"]}, {"match": ".*/bias", "axes": ["model"]}]
MESHES = {
    "one": None,
    "data": {"shape": [4], "axis_names": ["data"], "simulate": 4},
    "model": {
        "shape": [2], "axis_names": ["model"], "batch_axis": None, "simulate": 2, "layout": RULES,
    },
    "mixed": {"shape": [2, 2], "axis_names": ["data", "model"], "simulate": 4, "layout": RULES},
}  # fmt: skip


def main(folder: Path) -> None:
    """Train the same model with each mesh."""
    file = profiled(folder / "profile", bundled="digits")
    found = {}
    for name, mesh in MESHES.items():
        spec = spec_of(
            args={"units": 8, "dropout": 0.2, "batch_norm": True}, mesh=mesh,
            # plain gradient steps: Adam turns a gradient that is only rounding noise into a full step
            fit={"epochs": 2, "batch_size": 100, "optimizer": "sgd", "learning_rate": 0.1},
        )  # fmt: skip
        dataset = load_dataset(file, spec.data)
        prepared = prepare(spec, dataset, dataset.parts.train, name=name, seed=3)
        report = RecordingReport(folder)
        plan = TrainingPlan(
            model=prepared.model, batches=prepared.batches, epochs=2, best=BestTracker("val_loss", "min"),
            validation=prepared.evaluation_set(dataset.parts.validation), stop=None, report=report,
            checkpointer=Checkpointer(folder / name, report, fence=1), on_progress=lambda done: None,
        )  # fmt: skip
        result = Training(plan).run()
        kernel = prepared.model.get_layer("dense_1").kernel.value
        shard = kernel.addressable_shards[0].data.shape
        found[name] = {"history": result.history, "shard": shard, "devices": len(kernel.devices())}
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
