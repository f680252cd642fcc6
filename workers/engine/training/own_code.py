"""Prepares trainings for models that user code builds.

A model that the code compiles keeps its optimizer, loss and metrics; one that it does not compile gets those
in the spec. Both are trained by the same loops as the templates. Models from a class with its own `fit`, or
with its own steps, are trained by `own_fit`.
"""

from collections import OrderedDict
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import keras
import numpy as np

from jobs.spec.checks.dry_build import DataShape
from jobs.spec.checks.normalization import why_no_indices
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.sections.code_model import CodeModel
from workers.engine.arrays import Array
from workers.engine.compiled.cache_key import program_key
from workers.engine.compiled.code_program import CodeProgram
from workers.engine.compiled.device_feed import stays_on_device
from workers.engine.compiled.program import Program
from workers.engine.compiled.traced_hyperparameters import TRACED_OPTIMIZER_ARGUMENTS
from workers.engine.data.batches import Batches
from workers.engine.data.dataset import Dataset
from workers.engine.data.rows import Rows
from workers.engine.data.weights import RowWeights, relative
from workers.engine.errors import BadSpec, CodeFailure, CodeFitFailure
from workers.engine.models.build import compile_model
from workers.engine.models.code_models import code_build
from workers.engine.models.code_models.code_build import CodeBuild, build_code
from workers.engine.models.code_models.index_layers import layers_of_indices
from workers.engine.models.initial_values import InitialValues
from workers.engine.models.mesh import current as current_mesh
from workers.engine.models.mesh import restore as restore_mesh
from workers.engine.models.optimizer import ensure_built, unwrap_optimizer
from workers.engine.models.own_code.entries import entry_of
from workers.engine.models.own_code.failures import calling
from workers.engine.models.precision import check_computable, own_types, policy_of_code
from workers.engine.models.scaling import Scaling, measure_scaling
from workers.engine.models.variables import assign, held
from workers.engine.report import Report
from workers.engine.training import kept_weights
from workers.engine.training.code_evaluation import CodeEvaluationSet, CodeLoop, metric_names
from workers.engine.training.declarations import report_declared
from workers.engine.training.hooks import EpochHook
from workers.engine.training.loops import Loop
from workers.engine.training.mesh_setup import check_live, placement, set_mesh
from workers.engine.training.own_fit import CodeFitLoop, OwnFitTraining
from workers.engine.training.plan import EvaluationSet, TrainingPlan
from workers.engine.training.prepare import Prepared, batches_of, predict_batch_size
from workers.engine.training.training import Training

CACHED = 2
"""Built models that are kept for executions of the same trial."""


@dataclass
class _Cached:
    """A built model with its compiled functions, and the seed with which it was built."""

    build: CodeBuild
    program: Program
    seed: int


_CACHE: OrderedDict[str, _Cached] = OrderedDict()


@dataclass(frozen=True, kw_only=True)
class PreparedCode(Prepared):
    """A code model with its training data.

    Attributes:
        build: the model and the meaning of its outputs.
        seed: with which it was built. Code may draw constants that are no weights.
    """

    build: CodeBuild
    seed: int

    def hook(self, rates: Sequence[float] = ()) -> EpochHook:
        """See `Prepared.hook`. A compiled model's optimizer is the code's own."""
        return super().hook(rates) if _uses_fit(self.build) else EpochHook()

    def loop(self, validation: EvaluationSet | None = None, *, epochs: int) -> Loop:
        """See `Prepared.loop`."""
        if self.program is None:
            return CodeFitLoop(self.build, self.batches)
        if not isinstance(self.program, CodeProgram):
            return super().loop(validation, epochs=epochs)
        in_one_call = isinstance(validation, CodeEvaluationSet) and len(validation.x) <= validation.batch_size
        rows = validation.rows if isinstance(validation, CodeEvaluationSet) and in_one_call else ()
        # 1 is the default, which leaves the number to the loop.
        steps = self.spec.fit.steps_per_execution
        return CodeLoop(
            self.program, self.batches, rows, epochs=epochs, steps_per_call=steps if steps > 1 else None
        )

    def training(self, plan: TrainingPlan) -> Training:
        """See `Prepared.training`."""
        if plan.execution is not None:
            report_declared(plan.report, self.spec, self.build.hyperparameters)
        self.report_mesh(plan)
        if note := own_types(self.build.code_model, self.spec.precision.policy):
            plan.report.warning("precision_of_code", note)
        if self.program is not None:
            return Training(plan)
        # A `fit` may need validation data also in a training on all rows.
        part = plan.validation or self.evaluation_set(self.dataset.parts.validation)
        held_out: tuple[Array, ...] = part.x[:], part.y
        if part.weights is not None and not self.build.own_fit:
            # A class may expect a pair.
            held_out = *held_out, part.weights.astype(np.float32)
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
        arrays = held(self.model.variables)
        keras.utils.set_random_seed(self.seed)
        fresh = _built(self.spec, self.dataset, self.scaling)
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
            # Keras divides a loss by the number of rows, so their mean has to be 1.
            "weights": relative(weights, len(x)),
        }
        if not isinstance(self.program, CodeProgram):
            return UnmeasuredSet(**common)
        return CodeEvaluationSet(**common, build=self.build, program=self.program)

    def validation_metrics(self) -> frozenset[str] | None:
        """See `Prepared.validation_metrics`."""
        if _is_measured_by_spec(self.build):
            return super().validation_metrics()
        if self.program is None:
            return None
        return frozenset(f"val_{name}" for name in metric_names(self.build))


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


def _built(spec: ExperimentSpec, dataset: Dataset, scaling: Scaling) -> CodeBuild:
    if not isinstance(spec.model, CodeModel):
        raise TypeError(f"{spec.model.info.name} is not own code")
    hyperparameters = code_build.hyperparameters_with(spec.model.hyperparameters)
    try:
        shape = DataShape.from_schema(dataset.profile)
        return build_code(
            entry_of(spec.model),
            hyperparameters,
            shape,
            policy_of_code(spec.precision),
            scaling=scaling if spec.model.normalize else None,
        )
    except CodeFailure as failure:
        failure.hyperparameters = hyperparameters
        raise


def prepare_code(spec: ExperimentSpec, dataset: Dataset, rows: Array, *, seed: int) -> PreparedCode:
    """Build a model with user code for training on `rows`; see `prepare.prepare`.

    Raises:
        BadSpec: the spec asks for something that these data cannot provide.
        CodeFailure: the code cannot be imported, or builds no model for these data.
    """
    set_mesh(spec)
    mesh = current_mesh()
    x, y = dataset.take(rows)
    scaling = measure_scaling(x, y, dataset.profile)
    keras.utils.set_random_seed(seed)
    build = _built(spec, dataset, scaling)
    # Code that begins with `clear_session` has built its model without the mesh, which `check_live` reports.
    # Later variables, such as the optimizer's slots, follow the design again.
    restore_mesh(mesh)
    check_computable(build.model)
    _check_indices(build, dataset)
    batches = _batches(spec, dataset, rows, seed, build)
    common: dict[str, Any] = {
        "spec": spec,
        "dataset": dataset,
        "scaling": scaling,
        "initial": InitialValues([]),
    }
    if not build.is_plain:
        check_live(spec, build.model)
        return PreparedCode(model=build.model, batches=batches, build=build, seed=seed, **common)
    if not build.is_compiled:
        compile_model(build.model, spec, dataset.profile, scaling, steps=batches.steps)
    ensure_built(build.model)
    check_live(spec, build.model)
    cached = _cached(build, batches, program_key(spec, dataset, rows), seed)
    return PreparedCode(
        model=cached.build.model,
        batches=batches,
        program=cached.program,
        build=cached.build,
        seed=cached.seed,
        **common,
    )


def _check_indices(build: CodeBuild, dataset: Dataset) -> None:
    """Check that no layer takes normalized numbers as indices.

    Raises:
        BadSpec: one does.
    """
    if build.scaling is not None and (why := why_no_indices(layers_of_indices(build), dataset.profile)):
        raise BadSpec(f"model.normalize: {why}")


def _cached(build: CodeBuild, batches: Batches, key: str, seed: int) -> _Cached:
    """Return the cached model for the same program with the values from a model that was just built.

    A trial's executions share it, so it is compiled once, and they may be trained in one call.
    """
    if build.is_compiled:
        # Weights are an argument of the steps, but a step without them is another program.
        key = f"{key} weighted={batches.is_weighted} resident={stays_on_device(batches)}"
    cached = _CACHE.get(key)
    if cached is None or not _assigned(cached.build.model, build.model):
        with calling(CodeFitFailure, "the first training step"):
            cached = _Cached(build, _program(build, batches, key), seed)
        _CACHE[key] = cached
    _CACHE.move_to_end(key)
    while len(_CACHE) > CACHED:
        _CACHE.popitem(last=False)
    return cached


def _program(build: CodeBuild, batches: Batches, key: str) -> Program:
    if build.is_compiled:
        return CodeProgram(build.model, batches, key, placement())
    return Program(build.model, next(batches.draw(1)), key, placement=placement())


def _assigned(cached: Any, fresh: Any) -> bool:
    """Give a cached model the values from a new one; return whether it has the same variables."""
    groups = [(cached.variables, fresh.variables), (cached.optimizer.variables, fresh.optimizer.variables)]
    shapes = [[[(v.path, tuple(v.shape)) for v in group] for group in pair] for pair in groups]
    if any(old != new for old, new in shapes):
        return False
    for old, new in groups:
        assign(old, held(new))
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
        batches.is_filled = False
    return batches
