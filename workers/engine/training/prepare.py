"""Prepares a training: builds and compiles the model and makes its batches from a spec and a data set."""

import gc
import pkgutil
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import keras
import numpy as np

from jobs.spec.experiment import ExperimentSpec
from jobs.spec.sections.monitors import TRAINING_LOSS, Monitor
from workers.engine.arrays import Array
from workers.engine.compiled.cache_key import program_key
from workers.engine.compiled.program import Program
from workers.engine.data.batches import Batches, batch_size_for, row_weights
from workers.engine.data.dataset import Dataset
from workers.engine.data.rows import Rows, StreamedRows, selected
from workers.engine.data.weights import RowWeights, relative
from workers.engine.errors import BadSpec
from workers.engine.models.augment import saved_variables
from workers.engine.models.build import build, build_restartable, compile_model
from workers.engine.models.initial_values import InitialValues
from workers.engine.models.losses import loss_name, metric_names
from workers.engine.models.optimizer import ensure_built
from workers.engine.models.scaling import Scaling, measure_scaling
from workers.engine.models.variables import assign, held
from workers.engine.models.width_padding import Widths
from workers.engine.report import Report
from workers.engine.training.hooks import EpochHook, hook_for
from workers.engine.training.loops import FitLoop, Loop, predict, predict_in_batches
from workers.engine.training.mesh_report import report_shardings
from workers.engine.training.mesh_setup import check_live, placement, set_mesh
from workers.engine.training.plan import EvaluationSet, TrainingPlan
from workers.engine.training.program_loop import ProgramLoop
from workers.engine.training.training import Training

PREDICT_ROWS = 4096
"""Maximum batch size for predictions."""
PREDICT_ROWS_OF_TREES = 512
"""The same for trees: each row is in one node of each of perhaps thousands of trees."""


@dataclass(frozen=True)
class Prepared:
    """A compiled model with its training data.

    Attributes:
        model: the compiled model.
        batches: the training data.
        scaling: normalization, as measured on the training rows.
        spec: the model was built from it.
        dataset: the data set.
        initial: initial values for the model's variables.
        program: the model's compiled functions; None where one call trains the model.
        widths: the intended shapes, if the model was built wider (see `width_padding`).
    """

    model: Any
    batches: Batches
    scaling: Scaling
    spec: ExperimentSpec
    dataset: Dataset
    initial: InitialValues
    program: Program | None = None
    widths: Widths = field(default_factory=Widths)

    def loop(self, validation: EvaluationSet | None = None, *, epochs: int) -> Loop:
        """Return the loop that trains this model.

        Args:
            validation: predicted after each epoch.
            epochs: epochs to train.
        """
        if self.program is None:
            return FitLoop(self.model, self.batches)
        # The call that trains can also predict one batch of validation rows.
        fits_one_batch = validation is not None and len(validation.x) <= validation.batch_size
        rows = (validation.x,) if validation is not None and fits_one_batch else ()
        # 1 is the default, which leaves the number to the loop.
        steps = self.spec.fit.steps_per_execution
        return ProgramLoop(
            self.program, self.batches, rows, epochs=epochs, steps_per_call=steps if steps > 1 else None
        )

    def saved_form(self, predictions: Array) -> Array:
        """Return the trained model's predictions as the saved model makes them."""
        return predictions

    def predict(self, x: Rows, batch_size: int) -> Array:
        """Return the saved model's predictions for all rows, (rows, outputs) float32."""
        if self.program is None:
            return predict(self.model, x, batch_size)
        program, model = self.program, self.model
        # Validation has compiled this program, mostly for the same batch size. Keras would compile its own.
        groups = model.trainable_variables, model.non_trainable_variables
        trainable, other = ([variable.value for variable in group] for group in groups)
        return predict_in_batches(lambda rows: program.predict(trainable, other, rows), x, batch_size)

    @property
    def chooses_epoch(self) -> bool:
        """Whether the model has its best epoch's weights, if it may; otherwise its last one's."""
        return True

    def training(self, plan: TrainingPlan) -> Training:
        """Return this model's training that `plan` defines."""
        self.report_mesh(plan)
        return Training(plan)

    def report_mesh(self, plan: TrainingPlan) -> None:
        """Report how the model is divided over its mesh, if it has one."""
        if (mesh := self.spec.mesh) is None:
            return
        plan.mesh = mesh
        is_trial = plan.execution is not None
        report_shardings(plan.report, self.model, mesh, plan.batches.size, is_trial=is_trial)

    def model_to_save(self, name: str) -> Any:
        """Return a model `m_<name>` with the trained weights, without optimizer and augmentation."""
        weights = held(saved_variables(self.model))
        # On the same mesh: one device may not hold it. The two models then share the arrays of their weights.
        # It is not compiled: a compiled one would store its optimizer and a custom loss in the file.
        model = build(self.spec, self.dataset.profile, self.scaling, name=name, seed=self.spec.fit.seed)
        assign(model.variables, weights)
        return model

    def keeping_weights(self, report: Report, name: str) -> AbstractContextManager[None]:
        """Return a context that keeps the weights if the model cannot be saved in it."""
        del report, name
        return nullcontext()

    def evaluation_set(self, rows: Array) -> EvaluationSet:
        """Return these rows, with the spec's loss and metrics, for exact evaluation."""
        x, weights = self.dataset.x, self.dataset.weights_of(rows)
        # Rows of one batch are predicted by the call that trains, for which they stay on the device.
        is_one_batch = len(rows) <= predict_batch_size(self.spec, len(rows))
        chosen = x[rows] if is_one_batch else selected(x, rows)
        return self._evaluation_set(chosen, self.dataset.y[rows], weights)

    def _evaluation_set(self, x: Rows, y: Array, weights: RowWeights | None) -> EvaluationSet:
        fit, task = self.spec.fit, self.dataset.task
        return EvaluationSet(
            x=x,
            y=y,
            loss=loss_name(fit, task),
            metrics=metric_names(fit, task),
            scale=self.scaling.y_std,
            batch_size=predict_batch_size(self.spec, len(x)),
            weights=None if weights is None else weights.values,
        )

    def hook(self, rates: Sequence[float] = ()) -> EpochHook:
        """Return the hook that acts between epochs; for `rates` see `hooks.hook_for`."""
        return hook_for(self.spec.fit, rates)

    def validation_metrics(self) -> frozenset[str] | None:
        """Return the metric names that validation computes; None if they are not known before."""
        names = metric_names(self.spec.fit, self.dataset.task)
        return frozenset({"val_loss", *(f"val_{name}" for name in names)})


def prepare(spec: ExperimentSpec, dataset: Dataset, rows: Array, *, name: str, seed: int) -> Prepared:
    """Build and compile a model for training on `rows`, with the spec's mesh and precision.

    Args:
        spec: with all hyperparameters filled in.
        dataset: the data set.
        rows: the training rows' numbers, (rows,).
        name: the model's name.
        seed: for weights, dropout, augmentation and the row order.

    Raises:
        BadLayout: the layout does not match the model.
        BadSpec: the spec asks for something that this data or this process cannot provide.
    """
    # Frees the compiled functions of models that a warm runner has built before. One collection is enough.
    keras.backend.clear_session(free_memory=False)
    gc.collect()
    if preparation := spec.model.info.preparation:
        prepare_otherwise: Callable[..., Prepared] = pkgutil.resolve_name(preparation)
        return prepare_otherwise(spec, dataset, rows, seed=seed)
    keras.utils.set_random_seed(seed)
    x, y = dataset.take(rows)
    scaling = measure_scaling(x, y, dataset.profile)
    set_mesh(spec, dataset)
    model, initial = build_restartable(spec, dataset.profile, scaling, name=name, seed=seed, augmented=True)
    batches = batches_of(spec, dataset, rows, seed)
    compile_model(model, spec, dataset.profile, scaling, steps=batches.steps)
    ensure_built(model)
    check_live(spec, model)
    key = program_key(spec, dataset, rows)
    program = Program(model, next(batches.draw(1)), key, placement=placement())
    return Prepared(model, batches, scaling, spec, dataset, initial, program)


def batches_of(spec: ExperimentSpec, dataset: Dataset, rows: Array, seed: int) -> Batches:
    """Return the batches for training on `rows`; see `prepare`."""
    x, y = dataset.take(rows)
    return Batches(
        x=x,
        # The binary loss needs targets of the output's shape, (rows, 1).
        y=y.astype(np.float32)[:, None] if dataset.task == "binary" else y,
        weights=sample_weights(spec, dataset, rows),
        size=min(spec.fit.batch_size, len(x)),
        seed=seed,
        shuffle=spec.fit.shuffle,
        parts=x.parts if isinstance(x, StreamedRows) else None,
    )


def predict_batch_size(spec: ExperimentSpec, rows: int) -> int:
    """Return a batch size for predicting `rows` rows that is divisible by the mesh's batch shards."""
    shards = _shards(spec)
    most = PREDICT_ROWS if spec.model.info.by_gradient else PREDICT_ROWS_OF_TREES
    limit = most // shards * shards
    return batch_size_for(limit, rows, shards)


def _shards(spec: ExperimentSpec) -> int:
    """Return among how many devices a batch is divided."""
    return spec.mesh.batch_shards() if spec.mesh is not None else 1


def sample_weights(spec: ExperimentSpec, dataset: Dataset, rows: Array) -> Array:
    """Return each training row's weight, (rows,) float32: its class's weight times its own.

    The column's weights have the mean 1, so only their ratios count. A batch's loss is divided by the sum
    of its weights, so all weights times a number give the same.

    Args:
        spec: has the class weights.
        dataset: has the class labels and the weight column.
        rows: the training rows' numbers, (rows,).

    Raises:
        BadSpec: class weights are given for a task without classes, or for unknown classes; or all rows have
            weight 0.
    """
    rule = spec.fit.class_weights if spec.fit.class_weights != "none" else None
    if rule is not None and dataset.task not in ("binary", "multiclass"):
        raise BadSpec(f"class_weights need classes; this is a {dataset.task} task")
    labels = dataset.profile.class_labels
    if isinstance(rule, dict) and (unknown := set(rule) - set(labels)):
        raise BadSpec(f"class_weights names {sorted(unknown)}; the classes are {', '.join(labels[:20])}")
    of_classes = row_weights(dataset.y[rows], len(labels), rule, labels)
    of_rows = relative(dataset.weights_of(rows), len(rows))
    return of_classes if of_rows is None else (of_classes * of_rows).astype(np.float32)


def check_monitor(monitor: Monitor, prepared: Prepared) -> None:
    """Check that the measure that early stopping watches is computed after each epoch.

    Raises:
        BadSpec: it is not.
    """
    if monitor.metric != TRAINING_LOSS:
        check_metric_name(monitor.metric, prepared, "early_stopping.monitor")


def check_metric_name(name: str, prepared: Prepared, role: str) -> str:
    """Return `name` if validation computes this metric.

    Args:
        name: the metric's name, with the prefix `val_`.
        prepared: its spec and data determine the metrics.
        role: the metric's purpose, with which the message begins.

    Raises:
        BadSpec: it does not; the message begins with `role`.
    """
    names = prepared.validation_metrics()
    if names is not None and name not in names:
        available = ", ".join(sorted(names))
        raise BadSpec(f"{role} {name!r} is not computed for this task; available are {available}")
    return name
