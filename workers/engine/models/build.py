"""Builds and compiles a Keras model from a spec and the rows it will train on."""

import pkgutil
from dataclasses import dataclass
from typing import Any

import keras
import numpy as np

from jobs.contracts.experiment import ExperimentSpec
from jobs.contracts.profile import Profile
from jobs.contracts.signature import Signature, TensorSpec
from jobs.contracts.variables import head_units
from workers.engine.data.table import Array
from workers.engine.errors import BadSpec
from workers.engine.models.augment import augmentation, seeded_layers
from workers.engine.models.initial_values import InitialValues
from workers.engine.models.losses import LOSSES, WHILE_TRAINING, loss_name, metric_names
from workers.engine.models.optimizer import make_optimizer
from workers.engine.models.precision import scale_loss
from workers.engine.models.templates.site import Site

ACTIVATIONS = {"multiclass": "softmax", "binary": "sigmoid", "multilabel": "sigmoid", "regression": "linear"}


@dataclass(frozen=True)
class Scaling:
    """Mean and variance of the training part, per feature (per channel for images) and target column.

    `x_range` is its smallest and largest value over all features.
    """

    x_mean: Array
    x_variance: Array
    y_mean: Array | None = None
    y_variance: Array | None = None
    x_range: tuple[float, float] = (0.0, 255.0)

    @property
    def y_std(self) -> Array | None:
        """Return the target's standard deviation: the unit of a regression's loss."""
        return None if self.y_variance is None else np.sqrt(self.y_variance)


def measure_scaling(x: Array, y: Array, profile: Profile) -> Scaling:
    """Adapt the normalization to these rows, the training part only.

    Constant features get variance 1: divided by almost zero, a new value would explode in serving.
    """
    axes = tuple(range(x.ndim - 1))
    of_x = _moments(x, axes)
    span = float(x.min()), float(x.max())
    if profile.task != "regression":
        return Scaling(*of_x, x_range=span)
    return Scaling(*of_x, *_moments(y, (0,)), x_range=span)


def _moments(values: Array, axes: tuple[int, ...]) -> tuple[Array, Array]:
    mean = values.mean(axis=axes, dtype=np.float64)
    variance = values.var(axis=axes, dtype=np.float64)
    return mean, np.where(variance > 1e-12, variance, 1.0)


def build(
    spec: ExperimentSpec, profile: Profile, scaling: Scaling, *, name: str, seed: int, augmented: bool = False
) -> Any:
    """Return the functional model `m_<name>`, not compiled: raw inputs to final predictions.

    See `build_restartable`, which also returns how it starts from another seed.
    """
    return build_restartable(spec, profile, scaling, name=name, seed=seed, augmented=augmented)[0]


def build_restartable(
    spec: ExperimentSpec, profile: Profile, scaling: Scaling, *, name: str, seed: int, augmented: bool = False
) -> tuple[Any, InitialValues]:
    """Return the functional model `m_<name>`, not compiled, and where its variables start.

    `augmented` models vary their input in training mode, as the spec says; saved ones never do.

    Input (rows, *profile.input_shape) float32 as stored. Output float32: class probabilities
    (rows, classes); the probability of the second class (rows, 1) for binary; one probability a
    label; target values in their own unit for regression.

    Raises:
        BadSpec: the template or the augmentation does not fit the data.
    """
    with keras.StatelessScope():  # variables get their values when it is left
        model = _assemble(spec, profile, scaling, name, augmented=augmented)
        start = InitialValues(seeded_layers(model))
        start.set_up(seed)
    return model, start


def _assemble(spec: ExperimentSpec, profile: Profile, scaling: Scaling, name: str, *, augmented: bool) -> Any:
    info, args = spec.model.info, spec.model.resolved()
    if (refusal := spec.model.refusal(profile)) is not None:
        raise BadSpec(refusal)
    site = Site(spec.precision, profile, args)
    inputs = keras.Input(profile.input_shape, name="input", dtype="float32")
    normalize = keras.layers.Normalization(
        mean=scaling.x_mean.tolist(), variance=scaling.x_variance.tolist(), **site.named("normalize")
    )
    varied = _augmented(site, spec, scaling, inputs) if augmented else inputs
    features = pkgutil.resolve_name(info.builder)(site, args, normalize(varied))
    penalty = getattr(args, info.head_penalty) if info.head_penalty else 0
    outputs = keras.layers.Dense(
        head_units(profile),
        activation=ACTIVATIONS[profile.task],
        kernel_regularizer=keras.regularizers.L2(penalty) if penalty else None,
        **site.named("output"),
    )(features)
    if scaling.y_mean is not None and scaling.y_variance is not None:
        outputs = keras.layers.Normalization(
            mean=scaling.y_mean.tolist(),
            variance=scaling.y_variance.tolist(),
            invert=True,
            **site.named("target_scale"),
        )(outputs)
    return keras.Model(inputs, outputs, name=f"m_{name}")


def _augmented(site: Site, spec: ExperimentSpec, scaling: Scaling, inputs: Any) -> Any:
    asked = spec.fit.augmentation
    if asked is None:
        return inputs
    if site.profile.kind != "image":
        raise BadSpec("augmentation varies images; these data are vectors")
    layer = augmentation(asked, scaling.x_range)
    return inputs if layer is None else layer(inputs)


def compile_model(
    model: Any, spec: ExperimentSpec, profile: Profile, scaling: Scaling, *, steps: int
) -> None:
    """Compile for training; the loss is averaged over sample weights, so filled-up rows count nothing.

    Args:
        model: of `build`.
        spec: what is asked for.
        profile: of the data; scaling: of the rows that it trains on.
        steps: steps an epoch.

    Raises:
        BadSpec: a loss or metric does not fit the task, or an optimizer argument is unknown.
    """
    names = metric_names(spec.fit, profile.task)
    model.compile(
        optimizer=scale_loss(make_optimizer(spec.fit, steps), spec.precision),
        loss=_loss(loss_name(spec.fit, profile.task), scaling),
        weighted_metrics=[_metric(name, profile) for name in names if name in WHILE_TRAINING],
        steps_per_execution=spec.fit.steps_per_execution,
        auto_scale_loss=False,
        jit_compile=True,
    )


def _loss(name: str, scaling: Scaling) -> Any:
    kind = getattr(keras.losses, LOSSES[name][1])
    loss = kind(reduction="mean_with_sample_weight")
    if scaling.y_std is None:
        return loss
    return _Standardized(kind, scaling.y_std)


class _Standardized(keras.losses.Loss):
    """A regression loss in units of the target's standard deviation.

    The model predicts in the target's own unit; without this, the size of the gradients would
    depend on that unit.
    """

    def __init__(self, kind: Any, scale: Array) -> None:
        super().__init__(name="loss", reduction="mean_with_sample_weight")
        self._each_row = kind(reduction=None)
        self._scale = scale.astype(np.float32)

    def call(self, y_true: Any, y_pred: Any) -> Any:
        """Return one loss a row."""
        return self._each_row.call(y_true / self._scale, y_pred / self._scale)


def _metric(name: str, profile: Profile) -> Any:
    if name == "accuracy":
        if profile.task == "multiclass":
            return keras.metrics.SparseCategoricalAccuracy(name=name)
        return keras.metrics.BinaryAccuracy(name=name)
    return {"mse": keras.metrics.MeanSquaredError, "mae": keras.metrics.MeanAbsoluteError}[name](name=name)


def signature_of(model: Any) -> Signature:
    """Return what `model` takes and gives, without the batch dimension."""
    return Signature(
        inputs=tuple(TensorSpec(name=t.name, dtype=t.dtype, shape=tuple(t.shape[1:])) for t in model.inputs),
        outputs=tuple(
            TensorSpec(name=name, dtype=t.dtype, shape=tuple(t.shape[1:]))
            for name, t in zip(_output_names(model), model.outputs, strict=True)
        ),
    )


def _output_names(model: Any) -> list[str]:
    count = len(model.outputs)
    return ["output"] if count == 1 else [f"output_{i}" for i in range(count)]
