"""Prepares trainings for models that user code builds.

A model that the code compiles keeps its optimizer, loss and metrics; one that it does not compile gets those
in the spec. Both are trained by the same loops as the templates. Models from a class with its own `fit`, or
with its own steps, are trained by `own_fit`.
"""

from collections import OrderedDict
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, ClassVar

import keras
import numpy as np

from jobs.spec.checks.dry_build import DataShape
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.sections.code_model import CodeModel
from workers.engine.arrays import Array
from workers.engine.compiled.cache_key import program_key
from workers.engine.compiled.program import Program
from workers.engine.compiled.traced_hyperparameters import TRACED_OPTIMIZER_ARGUMENTS
from workers.engine.data.batches import Batches
from workers.engine.data.dataset import Dataset
from workers.engine.data.rows import Rows
from workers.engine.data.weights import RowWeights
from workers.engine.errors import BadSpec, CodeFitFailure
from workers.engine.evaluation.weighting import Weights
from workers.engine.models import code_build
from workers.engine.models.build import compile_model
from workers.engine.models.code_build import CodeBuild, build_code, compile_for_batches
from workers.engine.models.initial_values import InitialValues
from workers.engine.models.keras_private import compiled_metrics
from workers.engine.models.mesh import use_mesh
from workers.engine.models.optimizer import ensure_built, unwrap_optimizer
from workers.engine.models.own_code import calling, entry_of
from workers.engine.models.scaling import measure_scaling
from workers.engine.models.variables import assign, values
from workers.engine.report import Report
from workers.engine.training import kept_weights
from workers.engine.training.hooks import EpochHook
from workers.engine.training.loops import Loop
from workers.engine.training.own_fit import CodeFitLoop, OwnFitTraining
from workers.engine.training.plan import EvaluationSet, TrainingPlan
from workers.engine.training.prepare import Prepared, batches_of, predict_batch_size
from workers.engine.training.training import Training

CACHED = 2
"""Built models that are kept for executions of the same trial."""
ROWS_AT_ONCE = 8192
"""Rows whose metrics are computed in one call."""


@dataclass
class _Cached:
    """A built model with its compiled functions, and its loss if the code compiles it."""

    build: CodeBuild
    loss: Any
    program: Program


_CACHE: OrderedDict[str, _Cached] = OrderedDict()


@dataclass(frozen=True)
class CodeEvaluationSet(EvaluationSet):
    """Rows on which a compiled model's loss and metrics are computed after each epoch.

    They are computed as in Keras, over all rows. The loss has no weight penalties, as with templates.
    """

    draws: ClassVar[int] = 200
    build: CodeBuild | None = None
    loss_function: Any = None

    def _made(self) -> CodeBuild:
        if self.build is None:
            raise TypeError("the evaluation set has no model")
        return self.build

    def measure(self, metrics: Sequence[str], predictions: Array) -> dict[str, float]:
        """See `EvaluationSet.measure`. All metrics are computed."""
        del metrics
        return self._measured(self.y, predictions, self.weights)

    def computes(self, name: str) -> bool:
        """See `EvaluationSet.computes`."""
        return name == "loss" or name in metric_names(self._made())

    def score(self, name: str, y: Array, p: Array, weights: Weights) -> float:
        """See `EvaluationSet.score`."""
        build = self._made()
        rows = code_build.unfinished_rows(p, build.output, build.shape)
        return self._measured(y, rows, weights)[name]

    def _measured(self, y: Array, predictions: Array, weights: Weights) -> dict[str, float]:
        build = self._made()
        targets, metrics = build.targets(y), compiled_metrics(build.model)
        # The steps of the training keep the variables of metrics elsewhere, so they may be used here.
        if metrics is not None:
            metrics.reset_state()
        total = share = 0.0
        with calling(CodeFitFailure, "computing the loss and the metrics"):
            for start in range(0, len(y), ROWS_AT_ONCE):
                part = slice(start, start + ROWS_AT_ONCE)
                part_weights = None if weights is None else np.asarray(weights[part], np.float32)
                sums = len(targets[part]) if part_weights is None else float(part_weights.sum())
                total += sums * float(self.loss_function(targets[part], predictions[part], part_weights))
                share += sums
                if metrics is not None:
                    metrics.update_state(targets[part], predictions[part], sample_weight=part_weights)
            named = {} if metrics is None else {n: float(v) for n, v in metrics.result().items()}
        if metrics is not None:
            metrics.reset_state()
        return {"loss": total / max(share, 1e-12), **named}


def metric_names(build: CodeBuild) -> tuple[str, ...]:
    """Return the metric names that the code has compiled into its model, after it was called once."""
    metrics = compiled_metrics(build.model)
    return () if metrics is None or not metrics.built else tuple(metrics.result())


@dataclass(frozen=True, kw_only=True)
class PreparedCode(Prepared):
    """A code model with its training data.

    Attributes:
        build: the model and the meaning of its outputs.
        loss_function: for a model that the code compiles and whose steps run without Keras' `fit`.
    """

    build: CodeBuild
    loss_function: Any = None

    def hook(self, rates: Sequence[float] = ()) -> EpochHook:
        """See `Prepared.hook`. A compiled model's optimizer is the code's own."""
        return super().hook(rates) if _uses_fit(self.build) else EpochHook()

    def loop(self, validation: EvaluationSet | None = None, *, epochs: int) -> Loop:
        """See `Prepared.loop`."""
        if self.program is None:
            return CodeFitLoop(self.build, self.batches)
        return super().loop(validation, epochs=epochs)

    def training(self, plan: TrainingPlan) -> Training:
        """See `Prepared.training`."""
        if self.program is not None:
            return Training(plan)
        pair, rows = plan.validation, self.dataset.parts.validation
        # A `fit` may need validation data also in a training on all rows.
        held_out = (self.dataset.x[rows], self.dataset.y[rows]) if pair is None else (pair.x[:], pair.y)
        return OwnFitTraining(plan, self.build, self.spec, validation=held_out)

    def saved_form(self, predictions: Array) -> Array:
        """See `Prepared.saved_form`."""
        return code_build.finished_rows(predictions, self.build.output, self.build.shape)

    def predict(self, x: Rows, batch_size: int) -> Array:
        """See `Prepared.predict`."""
        if self.program is None:
            return self.saved_form(CodeFitLoop(self.build, self.batches).predict(x, batch_size))
        return self.saved_form(super().predict(x, batch_size))

    def model_to_save(self, name: str) -> Any:
        """See `Prepared.model_to_save`."""
        # The trained model has an optimizer, which its file shall not have, and programs that refer to it.
        arrays = values(self.model.variables)
        fresh = _built(self.spec, self.dataset)
        assign(fresh.model.variables, arrays)
        return code_build.finished_model(fresh, name)

    def keeping_weights(self, report: Report, name: str) -> AbstractContextManager[None]:
        """See `Prepared.keeping_weights`."""
        return kept_weights.keeping(self.build, report, name)

    def _evaluation_set(self, x: Rows, y: Array, weights: RowWeights | None) -> EvaluationSet:
        if _is_measured_by_spec(self.build):
            return super()._evaluation_set(x, y, weights)
        common: dict[str, Any] = {
            "x": x,
            "y": y,
            "loss": "",
            "metrics": (),
            "scale": None,
            "batch_size": predict_batch_size(self.spec, len(x)),
            "weights": None if weights is None else weights.values,
        }
        if self.program is None:
            return UnmeasuredSet(**common)
        return CodeEvaluationSet(**common, build=self.build, loss_function=self.loss_function)

    def validation_metrics(self) -> frozenset[str] | None:
        """See `Prepared.validation_metrics`."""
        if _is_measured_by_spec(self.build):
            return super().validation_metrics()
        if self.program is None:
            return None
        return frozenset({"val_loss", *(f"val_{name}" for name in metric_names(self.build))})


@dataclass(frozen=True)
class UnmeasuredSet(EvaluationSet):
    """Rows that the training's own code measures."""

    def computes(self, name: str) -> bool:
        """See `EvaluationSet.computes`."""
        del name
        return False


def _uses_fit(build: CodeBuild) -> bool:
    """Return whether the optimizer, the loss and the metrics come from the spec."""
    return build.is_plain and not build.is_compiled


def _is_measured_by_spec(build: CodeBuild) -> bool:
    """Return whether validation rows are measured by the loss and the metrics in the spec."""
    return _uses_fit(build) or not build.evaluates_rows


def _built(spec: ExperimentSpec, dataset: Dataset) -> CodeBuild:
    if not isinstance(spec.model, CodeModel):
        raise TypeError(f"{spec.model.info.name} is not own code")
    hyperparameters = code_build.hyperparameters_with(spec.model.hyperparameters)
    return build_code(entry_of(spec.model), hyperparameters, DataShape.from_schema(dataset.profile))


def prepare_code(spec: ExperimentSpec, dataset: Dataset, rows: Array, *, seed: int) -> PreparedCode:
    """Build a model with user code for training on `rows`; see `prepare.prepare`.

    Raises:
        BadSpec: the spec asks for something that these data cannot provide.
        CodeFailure: the code cannot be imported, or builds no model for these data.
    """
    use_mesh(None, [], 1)
    keras.utils.set_random_seed(seed)
    build = _built(spec, dataset)
    batches = _batches(spec, dataset, rows, seed, build)
    x, y = dataset.take(rows)
    scaling = measure_scaling(x, y, dataset.profile)
    common: dict[str, Any] = {
        "spec": spec,
        "dataset": dataset,
        "scaling": scaling,
        "initial": InitialValues([]),
    }
    if not build.is_plain:
        return PreparedCode(model=build.model, batches=batches, build=build, **common)
    loss = None
    if build.is_compiled:
        loss = compile_for_batches(build)
    else:
        compile_model(build.model, spec, dataset.profile, scaling, steps=batches.steps)
    cached = _cached(build, loss, batches, program_key(spec, dataset, rows))
    return PreparedCode(
        model=cached.build.model,
        batches=batches,
        program=cached.program,
        build=cached.build,
        loss_function=cached.loss,
        **common,
    )


def _cached(build: CodeBuild, loss: Any, batches: Batches, key: str) -> _Cached:
    """Return the cached model for the same program with the values from a model that was just built.

    A trial's executions share it, so it is compiled once, and they may be trained in one call.
    """
    ensure_built(build.model)
    cached = _CACHE.get(key)
    if cached is None or not _assigned(cached.build.model, build.model):
        with calling(CodeFitFailure, "the first training step"):
            cached = _Cached(build, loss, Program(build.model, next(batches.draw(1)), key))
        _CACHE[key] = cached
    _CACHE.move_to_end(key)
    while len(_CACHE) > CACHED:
        _CACHE.popitem(last=False)
    return cached


def _assigned(cached: Any, fresh: Any) -> bool:
    """Give a cached model the values from a new one; return whether it has the same variables."""
    groups = [(cached.variables, fresh.variables), (cached.optimizer.variables, fresh.optimizer.variables)]
    shapes = [[[(v.path, tuple(v.shape)) for v in group] for group in pair] for pair in groups]
    if any(old != new for old, new in shapes):
        return False
    for old, new in groups:
        assign(old, values(new))
    # Plain attributes that are arguments of the program; the learning rate is a variable.
    optimizers = unwrap_optimizer(cached.optimizer), unwrap_optimizer(fresh.optimizer)
    for name in TRACED_OPTIMIZER_ARGUMENTS:
        if hasattr(optimizers[1], name):
            setattr(optimizers[0], name, getattr(optimizers[1], name))
    return True


def _batches(spec: ExperimentSpec, dataset: Dataset, rows: Array, seed: int, build: CodeBuild) -> Batches:
    """Return the batches with the targets that the model's loss takes."""
    batches = batches_of(spec, dataset, rows, seed)
    _, y = dataset.take(rows)
    if not build.is_plain and not isinstance(batches.x, np.ndarray):
        raise BadSpec(
            f"{spec.model.info.name} trains its model itself, which needs all rows in memory, but this "
            "version is so large that its rows are read while a model trains; raise resources.memory_gib, or "
            "upload fewer rows"
        )
    if not _uses_fit(build):
        batches.y = build.targets(y)
    return batches
