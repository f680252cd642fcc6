"""Runs in its own process with 4 simulated devices: trains with several meshes and prints the losses."""

import gc
import json
import sys
from pathlib import Path
from typing import Any

from tests.present import present
from workers.runner.environment import Environment
from workers.runner.libraries import import_keras

Environment(threads=1, platform="cpu", simulated_devices=4).apply()
import_keras()

from jobs.messages.task import DatasetFile  # noqa: E402
from jobs.messages.training import TrainTask  # noqa: E402
from jobs.spec.data.encoding import encoded  # noqa: E402  the environment comes first
from jobs.spec.data.profile import Profile  # noqa: E402
from jobs.spec.experiment import ExperimentSpec  # noqa: E402
from jobs.spec.plan.variables import suggest_layout, variables  # noqa: E402
from jobs.spec.sections.mesh import MeshSpec  # noqa: E402
from tests.engine.helpers import RecordingReport, profiled, spec_of  # noqa: E402
from tests.engine.models import test_fine_tuning as tuning  # noqa: E402
from tests.engine.small_training import blobs_file  # noqa: E402
from tests.engine.texts import reviews  # noqa: E402
from workers.engine.data.dataset import load_dataset  # noqa: E402
from workers.engine.tasks import train as train_task  # noqa: E402
from workers.engine.training.checkpointing import Checkpointer  # noqa: E402
from workers.engine.training.early_stopping import BestTracker  # noqa: E402
from workers.engine.training.plan import TrainingPlan  # noqa: E402
from workers.engine.training.prepare import prepare  # noqa: E402
from workers.engine.training.training import Training  # noqa: E402

RULES = [{"match": ".*/kernel", "axes": [None, "model"]}, {"match": ".*/bias", "axes": ["model"]}]
MESHES: dict[str, Any] = {
    "one": None,
    "data": {"shape": [4], "axis_names": ["data"], "simulate": 4},
    "model": {
        "shape": [2], "axis_names": ["model"], "batch_axis": None, "simulate": 2, "layout": RULES,
    },
    "mixed": {"shape": [2, 2], "axis_names": ["data", "model"], "simulate": 4, "layout": RULES},
}  # fmt: skip


LAYERS = [{"match": "(first|second)/kernel", "axes": [None, "model"]}]
"""Of the version that is fine-tuned."""
DIGITS: dict[str, Any] = {"args": {"units": 8, "dropout": 0.2, "batch_norm": True}}
TEXTS: dict[str, Any] = {"template": "text_transformer", "args": {"dim": 8, "blocks": 1}}


def main(folder: Path) -> None:
    """Train the same models with each mesh."""
    gc.freeze()  # as a runner does: each new model starts with a collection
    digits = profiled(folder / "profile", bundled="digits")
    losses_by_mesh = {
        name: train(folder / name, digits, mesh, "dense_1", **DIGITS) for name, mesh in MESHES.items()
    }
    texts = reviews(folder / "reviews")
    several = {**MESHES["mixed"], "layout": suggested(texts)}
    pair = [
        train(folder / name, texts, mesh, "expand_1", **TEXTS)
        for name, mesh in (("alone", None), ("several", several))
    ]
    tuned = fine_tuned(folder / "tuned")
    sys.stdout.write(json.dumps({"digits": losses_by_mesh, "texts": pair, "fine_tuned": tuned}) + "\n")


def fine_tuned(folder: Path) -> dict[str, float]:
    """Fine-tune the same version with each mesh; return the validation losses."""
    folder.mkdir()
    data, base = blobs_file(folder), tuning.stored(tuning.layered(), folder)
    losses = {}
    for name in ("one", "data", "mixed"):
        place = folder / name
        place.mkdir()
        mesh = MESHES[name] and {**MESHES[name], **({"layout": LAYERS} if name == "mixed" else {})}
        body = {
            **tuning.spec(base, head="new", freeze_to="norm").to_json(),
            **({"mesh": mesh} if mesh else {}),
        }
        task = TrainTask(
            folder=str(place), checkpoints=str(place / "c"), spec=ExperimentSpec.model_validate(body),
            dataset=data, retrain=None, objective=tuning.LOSS, model_name="m", base_model=base,
        )  # fmt: skip
        losses[name] = train_task.run(task, RecordingReport(place))["metrics"]["validation"]["loss"]
    return losses


def suggested(texts: DatasetFile) -> list[dict[str, Any]]:
    """Return the layout that a plan suggests for the text model."""
    spec = spec_of("d", **TEXTS)
    listed = variables(spec.model, encoded(spec, Profile.model_validate(texts.profile)))
    return [rule.model_dump() for rule in suggest_layout(MeshSpec.model_validate(MESHES["mixed"]), listed)]


def train(folder: Path, file: DatasetFile, mesh: Any, layer: str, **model: Any) -> dict[str, Any]:
    """Train a model; return its history, and how a dense layer's kernel is divided."""
    # plain gradient steps: Adam turns a gradient that is only rounding noise into a full step
    fit = {"epochs": 2, "batch_size": 100, "optimizer": "sgd", "learning_rate": 0.1}
    spec = spec_of("d", mesh=mesh, fit=fit, **model)
    dataset = load_dataset(file, present(spec.data), spec.model.info.texts)
    prepared = prepare(spec, dataset, dataset.parts.train, name=folder.name, seed=3)
    report = RecordingReport(folder)
    plan = TrainingPlan(
        model=prepared.model, batches=prepared.batches, epochs=2, best=BestTracker("val_loss", "min"),
        validation=prepared.evaluation_set(dataset.parts.validation), stop=None, report=report,
        checkpointer=Checkpointer(folder, report, fence=1), on_progress=lambda done: None,
    )  # fmt: skip
    result = Training(plan).run()
    kernel = prepared.model.get_layer(layer).kernel.value
    shard = kernel.addressable_shards[0].data.shape
    return {"history": result.history, "shard": shard, "devices": len(kernel.devices())}


if __name__ == "__main__":
    main(Path(sys.argv[1]))
