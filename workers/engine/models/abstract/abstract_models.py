"""Builds the model of a spec for an estimate: without its data, and without values for its variables."""

from typing import Any

import jax
import numpy as np

from jobs.spec.checks.dry_build import DataShape, Output
from jobs.spec.data.profile import Profile
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.sections.code_model import CodeModel
from jobs.spec.sections.precision import Policy
from workers.engine.arrays import Array
from workers.engine.models.abstract.abstract_build import AbstractBuild, StepModel, build_abstract
from workers.engine.models.build import build_restartable, compile_model
from workers.engine.models.code_models import code_build
from workers.engine.models.code_models.code_build import CodeBuild, build_code
from workers.engine.models.keras_private import build_metrics
from workers.engine.models.optimizer import ensure_built
from workers.engine.models.own_code.entries import entry_of
from workers.engine.models.precision import policy_of_code
from workers.engine.models.scaling import Scaling, unit_scaling

STEPS = 100
"""Steps of an epoch, for schedules; no variable depends on their number."""


def build_for_spec(spec: ExperimentSpec, profile: Profile, output: Output | None = None) -> AbstractBuild:
    """Build a spec's model without values.

    Args:
        spec: without a search.
        profile: describes the model's input.
        output: the meaning of the outputs of own code, if it is known.

    Raises:
        EngineError: the model cannot be built for these data.
    """
    if not isinstance(spec.model, CodeModel):
        return build_abstract(lambda: _template(spec, profile))
    # Imported before the build is traced: a file may compute values when it is imported.
    model = spec.model
    hypermodel = entry_of(model)
    values, shape = model.hyperparameters, DataShape.from_schema(profile)

    def build() -> StepModel:
        hyperparameters = code_build.hyperparameters_with(values)
        policy = policy_of_code(spec.precision)
        normalized = unit_scaling(shape.input_shape[-1]) if model.normalize else None
        built = build_code(
            hypermodel,
            hyperparameters,
            shape,
            policy,
            output=output or _assumed(shape),
            scaling=normalized,
        )
        if not built.is_compiled and built.is_plain:
            compile_model(built.model, spec, profile, _scaling(profile), steps=STEPS)
            return _ready(StepModel(built.model, lambda rows: _batch_of_task(built, rows, weighted=True)))
        return step_model_of_code(built)

    return build_abstract(build)


def build_code_abstract(
    hypermodel: Any,
    hyperparameters: Any,
    shape: DataShape,
    output: Output,
    policy: Policy | None = None,
    *,
    scaling: Scaling | None = None,
) -> AbstractBuild:
    """Build a model of own code without values, for hyperparameters of KerasTuner; see `build_for_spec`.

    Args:
        hypermodel, hyperparameters, shape, output, policy, scaling: see `code_build.build_code`.
    """

    def build() -> StepModel:
        return step_model_of_code(
            build_code(hypermodel, hyperparameters.copy(), shape, policy, output=output, scaling=scaling)
        )

    return build_abstract(build)


def step_model_of_code(built: CodeBuild) -> StepModel:
    """Return a model of own code with the form of its batches.

    A model that the code does not compile has no step of its own.
    """

    def batch(rows: int) -> tuple[Any, ...]:
        return _batch_of_task(built, rows, weighted=False)

    if not built.is_compiled:
        return StepModel(built.model, batch, is_compiled=False)
    return _ready(StepModel(built.model, batch))


def _ready(made: StepModel) -> StepModel:
    """Make the variables of a compiled model's optimizer and metrics."""
    ensure_built(made.model)
    build_metrics(made.model, made.batch(1))
    return made


def _template(spec: ExperimentSpec, profile: Profile) -> StepModel:
    scaling = _scaling(profile)
    model, _ = build_restartable(spec, profile, scaling, name="estimate", seed=0, augmented=True)
    compile_model(model, spec, profile, scaling, steps=STEPS)

    def batch(rows: int) -> tuple[Any, ...]:
        y = _targets(DataShape.from_schema(profile), rows)
        if profile.task == "binary":
            y = y.astype(np.float32)[:, None]
        return _form((rows, *profile.input_shape)), _form_of(y), _form((rows,))

    return _ready(StepModel(model, batch))


def _batch_of_task(built: CodeBuild, rows: int, *, weighted: bool) -> tuple[Any, ...]:
    x: Any = _form((rows, *built.shape.input_shape))
    if built.preprocess is not None:
        x = jax.eval_shape(built.preprocess, x)
    y = _form_of(built.targets(_targets(built.shape, rows)))
    return (x, y, _form((rows,))) if weighted else (x, y)


def _targets(shape: DataShape, rows: int) -> Array:
    """Return targets of the task's form; each is zero."""
    if shape.task in ("binary", "multiclass"):
        return np.zeros(rows, np.int32)
    return np.zeros((rows, shape.outputs), np.float32)


def _form(shape: tuple[int, ...]) -> Any:
    """Return the form of an array of float32, without values."""
    return jax.ShapeDtypeStruct(shape, np.dtype(np.float32))


def _form_of(values: Array) -> Any:
    return jax.ShapeDtypeStruct(values.shape, values.dtype)


def _assumed(shape: DataShape) -> Output:
    """Return the meaning of outputs that need no further layer."""
    return "numbers" if shape.task == "regression" else "probabilities"


def _scaling(profile: Profile) -> Scaling:
    """Return statistics of the right shapes: no variable depends on their values."""
    last = profile.input_shape[-1]
    if profile.task != "regression":
        return Scaling(np.zeros(last), np.ones(last))
    return Scaling(np.zeros(last), np.ones(last), np.zeros(profile.outputs), np.ones(profile.outputs))
