"""Probes that show the effect of each experiment spec field, for a test over all fields.

A probe takes a spec and returns something that Trainyard makes from it, such as the layers of the model, the
rows of each part, the environment of the runner or the worker that gets the job. Nothing is trained.
"""

import json
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any, NamedTuple, cast
from unittest.mock import MagicMock, patch

import keras
import numpy as np

from jobs.kinds.ensemble.payload import EnsembleTask
from jobs.kinds.search.payload import SearchPayload
from jobs.messages.suggest import SuggestRequest
from jobs.messages.task import DatasetFile, Task
from jobs.messages.training import TrainTask, TrialTask
from jobs.spec.data.profile import Profile
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.plan import estimate
from jobs.spec.plan.estimate import History, PastTraining
from jobs.spec.sections.gpu import GpuDevice
from jobs.spec.sections.pruning import Curve
from jobs.spec.sections.schedules import ReduceOnPlateau
from tests.engine.helpers import RecordingReport
from tests.present import present
from workers.engine.data.dataset import Dataset, load_dataset
from workers.engine.evaluation.members import MemberPredictions
from workers.engine.models import mesh
from workers.engine.models.build import _assemble as assemble
from workers.engine.models.build import build
from workers.engine.models.optimizer import make_optimizer
from workers.engine.models.precision import scale_loss
from workers.engine.models.scaling import Scaling, measure_scaling
from workers.engine.search.suggest import suggest
from workers.engine.tasks import ensemble
from workers.engine.tasks.train import _TrainRun
from workers.engine.training.execution import Execution
from workers.engine.training.hooks import hook_for
from workers.engine.training.prepare import prepare
from workers.engine.training.pruning import RivalCurves, pruning_check
from workers.runner import serve
from workers.supervise.attempt.devices import Devices
from workers.supervise.attempt.memory import memory_cap
from workers.supervise.attempt.wanted_gpus import wanted_gpus

IMAGES = Profile.model_validate(
    {
        "rows": 9, "task": "multiclass", "target": "y", "features": ("x",), "outputs": 10, "columns": (),
        "preview": (), "kind": "image", "input_shape": (32, 32, 3),
    }
)  # fmt: skip
MEASURED = frozenset({"val_loss", "val_accuracy"})


class Files(NamedTuple):
    """The data sets that the probes read."""

    vectors: DatasetFile
    images: DatasetFile
    grouped: DatasetFile
    texts: DatasetFile
    sequences: DatasetFile

    def of(self, spec: ExperimentSpec) -> DatasetFile:
        if "text" in spec.model.info.data_kinds:
            return self.texts
        if spec.model.info.data_kinds == ("sequence",):
            return self.sequences
        needs_images = spec.model.info.data_kinds == ("image",) or spec.fit.augmentation is not None
        return self.images if needs_images else self.vectors

    def load(self, spec: ExperimentSpec) -> Dataset:
        return load_dataset(self.of(spec), present(spec.data), spec.texts)


Probe = Callable[[ExperimentSpec, Files], Any]


def data(spec: ExperimentSpec, files: Files) -> Any:
    """Return each part's features, targets and rows."""
    loaded = files.load(spec)
    arrays = loaded.x[:].tolist(), loaded.y.tolist(), [part.tolist() for part in loaded.parts]
    return (loaded.task, *arrays)


def grouped_data(spec: ExperimentSpec, files: Files) -> Any:
    """Return each part's rows if a column has the role group."""
    return [part.tolist() for part in load_dataset(files.grouped, present(spec.data)).parts]


def layers(spec: ExperimentSpec, files: Files) -> Any:
    """Return the layers that are trained, with their precision; or the trees."""
    loaded = files.load(spec)
    if not spec.model.info.by_gradient:
        # With the default there are too few rows for a split.
        model = spec.model.model_copy(update={"args": {"min_rows": 1, **spec.model.args}})
        spec = spec.model_copy(update={"model": model})
        prepared = prepare(spec, loaded, loaded.parts.train, name="t", seed=0)
        loop = prepared.loop(epochs=3)
        loop.epoch(3, 0, [], lambda _: None)
        return loop.weights()[0].tobytes().hex()
    scaling = measure_scaling(loaded.x, loaded.y, loaded.profile)
    # Otherwise operations are numbered: the second cast of a process is "cast_1".
    keras.backend.clear_session(free_memory=False)
    model = build(spec, loaded.profile, scaling, name="t", seed=0, augmented=True)
    return json.dumps(keras.saving.serialize_keras_object(model), sort_keys=True, default=str)


def hypermodel_layers(spec: ExperimentSpec, _: Files) -> Any:
    """Return the layers in a KerasTuner hypermodel for images of 32 × 32; no variable gets a value."""

    def described() -> str:
        with keras.StatelessScope(initialize_variables=False):
            model = assemble(spec, IMAGES, Scaling(np.zeros(3), np.ones(3)), "t", augmented=False)
        return json.dumps(model.get_config(), sort_keys=True, default=str)

    # Keras keeps the variables that wait for their values by thread.
    with ThreadPoolExecutor(max_workers=1) as thread:
        return thread.submit(described).result()


def optimizer(spec: ExperimentSpec, _: Files) -> Any:
    """Return the optimizer with its schedule over steps, or the learning rates on a plateau."""
    # Otherwise names are numbered: the second optimizer of a process is "adam_1".
    keras.backend.clear_session(free_memory=False)
    built_optimizer = scale_loss(make_optimizer(spec.fit, steps=10), spec.precision)
    config = keras.optimizers.serialize(built_optimizer)
    return config, _rates(spec, built_optimizer) if isinstance(spec.fit.schedule, ReduceOnPlateau) else None


def _rates(spec: ExperimentSpec, built_optimizer: Any) -> list[float]:
    model, hook, rates = SimpleNamespace(optimizer=built_optimizer), hook_for(spec.fit), []
    for epoch, loss in enumerate([1.0, *[0.9] * 4, 0.8999, 0.89, *[0.5] * 12], start=1):
        hook.after_epoch(epoch, {"val_loss": loss, "val_accuracy": epoch / 100}, model)
        rates.append(float(built_optimizer.learning_rate))
    return rates


def training(spec: ExperimentSpec, files: Files) -> Any:
    """Return a training's batches, loss, metrics and calls."""
    loaded = files.load(spec)
    prepared = prepare(spec, loaded, loaded.parts.train, name="t", seed=spec.fit.seed)
    table, weights = prepared.batches.table(1)
    loop: Any = prepared.loop(epochs=2)
    loss = prepared.model.loss
    calls = loop.step_mode, loop.call_length.steps, loop.call_length.is_fixed
    losses = type(loss), type(getattr(loss, "_each_row", None))
    return table.tolist(), weights.tolist(), losses, sorted(present(prepared.validation_metrics())), calls


def epochs(spec: ExperimentSpec, files: Files) -> Any:
    """Return how a training without trials, or a retraining, chooses and counts its epochs."""
    objective = SearchPayload().objective(spec)
    task = TrainTask(
        folder="", spec=spec, dataset=files.vectors, retrain=spec.after.retrain, objective=objective,
        model_name="t",
    )  # fmt: skip
    run = _TrainRun(task, RecordingReport())
    best, stop = run._trackers(SimpleNamespace(validation_metrics=lambda: MEASURED))  # type: ignore[arg-type]
    trackers = [tracker and (tracker.metric, tracker.patience, tracker.min_delta) for tracker in (best, stop)]
    return run._epochs, run._retrain_epochs(10), run._retrains(), trackers


def trial(spec: ExperimentSpec, files: Files) -> Any:
    """Return the measure that chooses a trial's best epoch."""
    objective = SearchPayload().objective(spec)
    plan: dict[str, Any] = {
        "number": 1,
        "values": {},
        "spec": spec,
        "executions": [{"execution": 1, "seed": 1}],
    }
    task = TrialTask.model_validate(
        {"folder": "", "spec": spec, "objective": objective, "dataset": files.vectors, "trials": [plan]}
    )
    context = MagicMock(task=task, trial=task.trials[0])
    execution = Execution(task.trials[0].executions[0], context)
    execution._checkpointer = MagicMock()
    trial_plan = execution._training_plan(MagicMock(validation_metrics=lambda: MEASURED), np.arange(3))
    return trial_plan.best.metric if trial_plan.best else None


def proposals(spec: ExperimentSpec, _: Files) -> Any:
    """Return the first configurations that the algorithm proposes."""
    assert spec.search is not None
    answer = suggest(SuggestRequest(search=spec.search, epochs=spec.fit.epochs, count=80))
    return [
        (suggestion.values, suggestion.bracket, suggestion.epochs) for suggestion in answer.suggestions
    ], answer.exhausted


def verdicts(spec: ExperimentSpec, _: Files) -> Any:
    """Return the epochs at which the pruner ends a mediocre training, for trials in several brackets."""
    curves = [
        Curve(trial=n, execution=1, epochs=27, over=True, best=((1, 1.0 / n), (9, 0.9 / n)))
        for n in range(1, 9)
    ]
    task: Any = SimpleNamespace(spec=spec, objective=SimpleNamespace(direction="min"))
    ends = []
    for number in range(1, 50, 6):
        mine: Any = SimpleNamespace(number=100 + number, until=None, spec=spec)
        check = pruning_check(task, mine, MagicMock(execution=1), RivalCurves(curves, tuple))
        ends.append([check is not None and check(epoch, [(1, 0.3)]) is not None for epoch in range(1, 28)])
    return ends


def runner(spec: ExperimentSpec, files: Files) -> Any:
    """Return the variables that a runner sets for a task, and the settings with which it starts JAX."""
    task = TrainTask(
        folder=".", spec=spec, dataset=files.vectors, retrain=None, objective=SearchPayload().objective(spec),
        model_name="t",
    )  # fmt: skip
    configure = MagicMock()
    replaced: dict[str, Any] = {"configure_jax": configure, "load": MagicMock(), "make_record": lambda *_: {}}
    replaced |= {
        "set_process_name": MagicMock(),
        "newest_intact": lambda _: None,
        "EventReporter": MagicMock(),
    }
    replaced |= {"Started": MagicMock(), "use_accelerator": MagicMock()}
    with patch.dict(os.environ), patch.multiple(serve, **replaced):
        process: Any = serve.Runner(MagicMock(), MagicMock())
        # It would exempt the objects of all tests from garbage collection.
        process._frozen = True
        before = dict(os.environ)
        process._run(task)
        # Without those of this process: pytest has one with the name of the test.
        changed = {name: value for name, value in os.environ.items() if before.get(name) != value}
        return changed, configure.call_args


def distribution(spec: ExperimentSpec, _: Files) -> Any:
    """Return the model's devices, axes and layout."""
    assert spec.mesh is not None
    with patch.object(mesh, "_devices", lambda mesh_spec: [f"cpu:{i}" for i in range(mesh_spec.size())]):
        sharding = mesh._distribution(spec.mesh)
    layout = getattr(sharding, "_layout_map", None)
    rules = {} if layout is None else {rule: layout[rule].axes for rule in layout}
    return sharding.device_mesh.axis_names, sharding.device_mesh.shape, sharding.batch_dim_name, rules


def ensemble_weights(spec: ExperimentSpec, files: Files) -> Any:
    """Return the weights with which ensemble members are combined."""
    truth = np.arange(12) % 2
    good = np.column_stack([0.9 - 0.8 * truth, 0.1 + 0.8 * truth])
    members = [{"name": name, "model": "m", "validation_predictions": "p"} for name in "ab"]
    task = EnsembleTask.model_validate(
        {
            "folder": ".",
            "spec": spec,
            "ensemble": spec.after.ensemble,
            "dataset": files.vectors,
            "members": members,
        }
    )
    names, predictions = ("a", "b"), (good, np.full((12, 2), 0.5))
    stored = MemberPredictions("multiclass", names, names, np.arange(12), truth, predictions)
    combine = MagicMock(side_effect=InterruptedError)
    replaced: dict[str, Any] = {
        "read_predictions": lambda *_: stored,
        "load_model": MagicMock(),
        "read_features": lambda _: None,
        "combine": combine,
    }
    with patch.multiple(ensemble, **replaced):
        try:
            ensemble.run(task, RecordingReport())
        except InterruptedError:
            return combine.call_args.args[1].tolist()
    raise AssertionError("nothing was combined")


def given_gpus(spec: ExperimentSpec, _: Files) -> Any:
    """Return the GPUs that a run gets on a worker with a small one and two large ones."""
    models = (
        GpuDevice("gpu:0", "T4", 16),
        GpuDevice("gpu:1", "H200", 10**12),
        GpuDevice("gpu:2", "H200", 10**12),
    )
    wanted = wanted_gpus(cast("Task", SimpleNamespace(spec=spec)), spec.resources.slots, models)
    return Devices({gpu.name: gpu.name for gpu in models}).take(wanted.number, avoid=wanted.unwanted)


def cap(spec: ExperimentSpec, _: Files) -> Any:
    """Return the memory above which a run is stopped."""
    return memory_cap(SimpleNamespace(spec=spec), share=2**30)  # type: ignore[arg-type]


def hours(spec: ExperimentSpec, _: Files) -> Any:
    """Return the estimated device hours."""
    past = History([PastTraining(epochs=9, best_epoch=9, patience=None)], 1.0, "this experiment")
    return estimate.estimate_time(spec, executions=1, most_epochs=9, history=past).hours
