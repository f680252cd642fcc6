"""Runs in its own process with 8 simulated devices: trains with several meshes and prints the losses."""

import gc
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from tests.present import present
from workers.runner.environment import Environment
from workers.runner.libraries import import_keras

Environment(threads=1, platform="cpu", simulated_devices=8).apply()
import_keras()

from jobs.messages.task import DatasetFile  # noqa: E402
from jobs.messages.training import ExecutionPlan, TrainTask, TrialPlan, TrialTask  # noqa: E402
from jobs.spec.data.encoding import encoded  # noqa: E402  the environment comes first
from jobs.spec.data.profile import Profile  # noqa: E402
from jobs.spec.experiment import ExperimentSpec  # noqa: E402
from jobs.spec.plan.layout_rules import suggest_layout  # noqa: E402
from jobs.spec.plan.variables import variables  # noqa: E402
from jobs.spec.sections import measures  # noqa: E402
from jobs.spec.sections.mesh import MeshSpec  # noqa: E402
from tests.engine.helpers import RecordingReport, blobs, profiled, spec_of  # noqa: E402
from tests.engine.models import test_fine_tuning as tuning  # noqa: E402
from tests.engine.models.test_own_code_training import trial  # noqa: E402
from tests.engine.processes.mesh_code import CODE, FIRST, LAYOUTS, REFUSED  # noqa: E402
from tests.engine.sequences import wave_arrays  # noqa: E402
from tests.engine.small_training import blobs_file, train_on  # noqa: E402
from tests.engine.texts import reviews  # noqa: E402
from workers.engine.data.dataset import load_dataset  # noqa: E402
from workers.engine.report import TaskInterrupted  # noqa: E402
from workers.engine.tasks import train as train_task  # noqa: E402
from workers.engine.tasks import trial as trial_task  # noqa: E402
from workers.engine.training import checkpoint  # noqa: E402
from workers.engine.training.checkpointing import Checkpointer  # noqa: E402
from workers.engine.training.early_stopping import BestTracker  # noqa: E402
from workers.engine.training.plan import TrainingPlan  # noqa: E402
from workers.engine.training.prepare import prepare  # noqa: E402

DENSE = [
    {"match": "dense_1/kernel", "axes": [None, "model"]},
    {"match": ".*_1/(bias|gamma)", "axes": ["model"]},
]
RULES = [{"match": ".*/kernel", "axes": [None, "model"]}, {"match": ".*/bias", "axes": ["model"]}]
ROWS = {"shape": [8], "axis_names": ["data"], "simulate": 8}
BOTH: dict[str, Any] = {"shape": [2, 4], "axis_names": ["data", "model"], "simulate": 8}
MESHES: dict[str, Any] = {
    "one": None,
    "data": {"shape": [4], "axis_names": ["data"], "simulate": 4},
    "model": {
        "shape": [2], "axis_names": ["model"], "batch_axis": None, "simulate": 2, "layout": RULES,
    },
    "mixed": {"shape": [2, 2], "axis_names": ["data", "model"], "simulate": 4, "layout": RULES},
    "8x1": {"shape": [8, 1], "axis_names": ["data", "model"], "simulate": 8, "layout": DENSE},
    "2x4": {**BOTH, "layout": DENSE},
}  # fmt: skip


LAYERS = [{"match": "(first|second)/kernel", "axes": [None, "model"]}]
"""Of the version that is fine-tuned."""
DIGITS: dict[str, Any] = {"args": {"units": 8, "dropout": 0.2, "batch_norm": True}}
TEXTS: dict[str, Any] = {"template": "text_transformer", "args": {"dim": 8, "blocks": 1}}
SEQUENCES: dict[str, Any] = {"template": "sequence", "args": {"units": 8, "dropout": 0.1}}


def main(folder: Path) -> None:
    """Train the same models with each mesh."""
    gc.freeze()  # as a runner does: each new model starts with a collection
    digits = profiled(folder / "profile", bundled="digits")
    texts, waves = reviews(folder / "reviews"), ragged_waves(folder / "waves")
    results = {
        "digits": {
            name: train(folder / f"digits-{name}", digits, mesh, "dense_1", **DIGITS)
            for name, mesh in MESHES.items()
        },
        "texts": {
            name: train(folder / f"texts-{name}", texts, mesh, "expand_1", **TEXTS)
            for name, mesh in (
                ("one", None),
                ("mixed", suggested(texts, "mixed")),
                ("2x4", suggested(texts, "2x4")),
            )
        },
        "sequences": {
            name: train(folder / f"waves-{name}", waves, mesh, "output", **SEQUENCES)
            for name, mesh in (("one", None), ("8x1", ROWS))
        },
        "fine_tuned": fine_tuned(folder / "tuned"),
        "code": code_runs(folder / "code", waves),
        "resumed": resumed(folder / "resumed"),
        "search": {
            name: searched(folder / f"search-{name}", mesh) for name, mesh in (("one", None), ("2x4", BOTH))
        },
    }
    sys.stdout.write(json.dumps(results) + "\n")


def ragged_waves(folder: Path) -> DatasetFile:
    """Store sequences of different lengths: the steps after the end are 0."""
    folder.mkdir()
    x, y = wave_arrays(173)
    lengths = np.random.default_rng(1).integers(2, x.shape[1] + 1, len(x))
    x[np.arange(x.shape[1])[None, :] >= lengths[:, None]] = 0
    np.savez(folder / "waves.npz", x=x, y=y)
    return profiled(folder / "profile", source="npz", path=str(folder / "waves.npz"))


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


def code_runs(folder: Path, waves: DatasetFile) -> dict[str, Any]:
    """Train own code on one device, 2 × 4 and 8 × 1; return each epoch's metrics, or the error."""
    folder.mkdir()
    x, y = blobs(173)
    np.savez(folder / "blobs.npz", x=x, y=y)
    rows = profiled(folder / "profile", source="npz", path=str(folder / "blobs.npz"))
    runs: dict[str, Any] = {}
    for case, (text, entry, metric) in CODE.items():
        file = waves if case == "masked" else rows
        meshes = {"one": None, "2x4": {**BOTH, "layout": [LAYOUTS.get(case, FIRST)]}, "8x1": ROWS}
        runs[case] = {
            name: code_run(folder / f"{case}-{name}", file, text, entry, mesh, metric)
            for name, mesh in meshes.items()
        }
    for case, (text, entry) in REFUSED.items():
        runs[case] = code_run(folder / case, rows, text, entry, {**BOTH, "layout": [FIRST]}, "val_loss")
    return runs


def code_run(folder: Path, file: DatasetFile, text: str, entry: str, mesh: Any, metric: str) -> Any:
    """Run one trial of own code, in which a rule may match nothing; return each epoch's metrics."""
    folder.mkdir()
    direction = measures.direction(metric)
    objective = {"metric": metric, "direction": direction}
    # 32 rows a batch leave a last batch that neither two nor eight devices can divide.
    fit = {"epochs": 2, "batch_size": 32, "learning_rate": 0.05, "optimizer": "sgd"}
    parts: dict[str, Any] = {"mesh": mesh} if mesh else {}
    result, report = trial(
        folder, text, entry, file, metric=metric, direction=direction, fit=fit,
        search={"objective": objective, "max_trials": 1, "space": []}, **parts,
    )  # fmt: skip
    if (error := next((args[0] for args, _ in report.of("trial_finished") if args), None)) is not None:
        return {"error": str(error)}
    assert result["trials"], report.calls[-5:]
    return {
        "history": [without_system(args[1]) for args, _ in report.of("metric")],
        **sharded(report, folder),
    }


def searched(folder: Path, mesh: Any) -> dict[str, Any]:
    """Run a trial of each of two templates, with two executions; return each epoch's metrics."""
    folder.mkdir()
    file, report = blobs_file(folder), RecordingReport(folder)
    layout = [{"match": "dense_1/kernel", "axes": [None, "model"]}]
    common: dict[str, Any] = {
        "fit": {"epochs": 2, "batch_size": 16, "optimizer": "sgd", "learning_rate": 0.1},
        "mesh": mesh and {**mesh, "layout": layout},
        "search": {"max_trials": 2, "space": [{"name": "learning_rate", "kind": "choice", "values": [0.1]}]},
    }
    specs = spec_of("d", args={"units": 8, "dropout": 0.2}, **common), spec_of("d", "linear", **common)
    executions = tuple(ExecutionPlan(execution=number, seed=number) for number in (1, 2))
    task = TrialTask(
        folder=str(folder), spec=specs[0], objective=tuning.LOSS, dataset=file,
        trials=tuple(
            TrialPlan(number=number, values={}, spec=spec, executions=executions)
            for number, spec in enumerate(specs, 1)
        ),
    )  # fmt: skip
    trial_task.run(task, report)
    metrics = [(named["execution"], args[0], without_system(args[1])) for args, named in report.of("metric")]
    # Executions may be trained side by side.
    history = [values for _, _, values in sorted(metrics, key=lambda entry: entry[:2])]
    warned = [args for args, _ in report.of("warning")]
    return {"history": history, "warned": warned, **(sharded(report, folder) if mesh else {})}


def sharded(report: RecordingReport, folder: Path) -> dict[str, Any]:
    """Return how many variables are divided, as the training has reported it."""
    if not report.of("artifact"):
        return {}
    body = json.loads((folder / "shardings.json").read_text())
    return {"divided": [v["path"] for v in body["variables"] if v["shard_shape"] != v["shape"]],
            "differ": [v["path"] for v in body["variables"] if v["designed"] != v["live"]],
            "devices": len(body["devices"])}  # fmt: skip


def without_system(values: dict[str, float]) -> dict[str, float]:
    """Leave out how long things took."""
    return {name: float(value) for name, value in values.items() if not name.startswith("system/")}


def resumed(folder: Path) -> dict[str, Any]:
    """Train on 2 × 4 in one go, and with a pause after two epochs; return the losses and the digests."""
    folder.mkdir()
    file, mesh = blobs_file(folder), {**BOTH, "layout": DENSE}
    whole = train_on(file, folder / "whole", mesh=mesh)
    try:
        train_on(file, folder / "cut", mesh=mesh, requests=[None, "pause"])
    except TaskInterrupted:
        snapshot = checkpoint.read(checkpoint.list_committed(folder / "cut")[0])
    continued = train_on(file, folder / "continued", mesh=mesh, resume=snapshot)
    alone = train_on(file, folder / "alone")
    return {
        "whole": whole.result.history,
        "continued": continued.result.history,
        "alone": alone.result.history,
        "at": snapshot.state["epoch"],
    }


def suggested(texts: DatasetFile, name: str) -> dict[str, Any]:
    """Return a mesh with the layout that a plan suggests for the text model."""
    spec = spec_of("d", **TEXTS)
    listed = variables(spec.model, encoded(spec, Profile.model_validate(texts.profile)))
    rules = suggest_layout(MeshSpec.model_validate(MESHES[name]), listed)
    return {**MESHES[name], "layout": [rule.model_dump() for rule in rules]}


def train(folder: Path, file: DatasetFile, mesh: Any, layer: str, **model: Any) -> dict[str, Any]:
    """Train a model; return its history, and how a dense layer's kernel is divided."""
    # plain gradient steps: Adam turns a gradient that is only rounding noise into a full step
    fit = {
        "epochs": 2,
        "batch_size": 64,
        "optimizer": "sgd",
        "learning_rate": 0.1,
        "class_weights": "balanced",
    }
    task = Profile.model_validate(file.profile).task
    fit["metrics"] = [
        name for name in measures.metrics_for(task) if name != "top_5_accuracy" or file.profile["outputs"] > 5
    ]
    spec = spec_of("d", mesh=mesh, fit=fit, **model)
    dataset = load_dataset(file, present(spec.data), spec.texts)
    prepared = prepare(spec, dataset, dataset.parts.train, name=folder.name, seed=3)
    folder.mkdir()
    report = RecordingReport(folder)
    validation = prepared.evaluation_set(dataset.parts.validation)
    plan = TrainingPlan(
        model=prepared.model, batches=prepared.batches, epochs=2, best=BestTracker("val_loss", "min"),
        validation=validation, stop=None, report=report, loop=prepared.loop(validation, epochs=2),
        checkpointer=Checkpointer(folder, report, fence=1), on_progress=lambda done: None,
    )  # fmt: skip
    result = prepared.training(plan).run()
    kernel = prepared.model.get_layer(layer).kernel.value
    shard = kernel.addressable_shards[0].data.shape
    return {
        "history": result.history,
        "shard": shard,
        "devices": len(kernel.devices()),
        "ragged": len(prepared.batches.x) % prepared.batches.size,
        "speeds": [sorted(name for name in args[1] if "second" in name) for args, _ in report.of("metric")],
        **sharded(report, folder),
    }


if __name__ == "__main__":
    main(Path(sys.argv[1]))
