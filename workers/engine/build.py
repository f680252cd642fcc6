"""Builds and compiles a Keras model from a spec and the rows it will train on."""

from dataclasses import dataclass
from typing import Any

import keras
import numpy as np

from jobs.spec.experiment import ExperimentSpec
from jobs.spec.fit import FitSpec
from jobs.spec.model import LinearArgs
from jobs.spec.profile import Profile
from jobs.spec.signature import Signature, TensorSpec
from jobs.spec.variables import head_units
from workers.engine.data.table import Array
from workers.engine.errors import BadSpec
from workers.engine.kernels import as_keras
from workers.engine.losses import LOSSES, WHILE_TRAINING, loss_name, metric_names
from workers.engine.precision import scale_loss
from workers.engine.templates import TEMPLATES, Site

ACTIVATIONS = {"multiclass": "softmax", "binary": "sigmoid", "multilabel": "sigmoid", "regression": "linear"}
OPTIMIZERS = {
    "adam": "Adam",
    "adamw": "AdamW",
    "nadam": "Nadam",
    "rmsprop": "RMSprop",
    "sgd": "SGD",
    "adagrad": "Adagrad",
    "lion": "Lion",
}


@dataclass(frozen=True)
class Scaling:
    """Mean and variance of the training part, per feature (per channel for images) and target column."""

    x_mean: Array
    x_variance: Array
    y_mean: Array | None = None
    y_variance: Array | None = None

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
    return Scaling(*of_x, *_moments(y, (0,))) if profile.task == "regression" else Scaling(*of_x)


def _moments(values: Array, axes: tuple[int, ...]) -> tuple[Array, Array]:
    mean = values.mean(axis=axes, dtype=np.float64)
    variance = values.var(axis=axes, dtype=np.float64)
    return mean, np.where(variance > 1e-12, variance, 1.0)


def build(spec: ExperimentSpec, profile: Profile, scaling: Scaling, *, name: str, seed: int) -> Any:
    """Return the functional model `m_<name>`, not compiled: raw inputs to final predictions.

    Input (rows, *profile.input_shape) float32 as stored. Output float32: class probabilities
    (rows, classes); the probability of the second class (rows, 1) for binary; one probability a
    label; target values in their own unit for regression.

    Raises:
        BadSpec: the template does not fit the data.
    """
    site = Site(seed, spec.precision, profile)
    args = spec.model.resolved()
    inputs = keras.Input(profile.input_shape, name="input", dtype="float32")
    normalize = keras.layers.Normalization(
        mean=scaling.x_mean.tolist(), variance=scaling.x_variance.tolist(), **site.named("normalize")
    )
    x = TEMPLATES[type(args)](site, args, normalize(inputs))
    penalty = keras.regularizers.L2(args.l2) if isinstance(args, LinearArgs) and args.l2 else None
    outputs = keras.layers.Dense(
        head_units(profile),
        activation=ACTIVATIONS[profile.task],
        kernel_regularizer=penalty,
        **site.weights("output"),
    )(x)
    if scaling.y_mean is not None and scaling.y_variance is not None:
        outputs = keras.layers.Normalization(
            mean=scaling.y_mean.tolist(),
            variance=scaling.y_variance.tolist(),
            invert=True,
            **site.named("target_scale"),
        )(outputs)
    model = keras.Model(inputs, outputs, name=f"m_{name}")
    as_keras(model)
    return model


def compile_model(model: Any, spec: ExperimentSpec, profile: Profile, scaling: Scaling) -> None:
    """Compile for training; the loss is averaged over sample weights, so filled-up rows count nothing.

    Raises:
        BadSpec: a loss or metric does not fit the task, or an optimizer argument is unknown.
    """
    names = metric_names(spec.fit, profile.task)
    model.compile(
        optimizer=scale_loss(make_optimizer(spec.fit), spec.precision),
        loss=_loss(loss_name(spec.fit, profile.task), scaling),
        weighted_metrics=[_metric(name, profile) for name in names if name in WHILE_TRAINING],
        steps_per_execution=spec.fit.steps_per_execution,
        auto_scale_loss=False,
        jit_compile=True,
    )


def make_optimizer(fit: FitSpec) -> Any:
    """Return the optimizer that `fit` names.

    Raises:
        BadSpec: an argument that it does not take.
    """
    kind = getattr(keras.optimizers, OPTIMIZERS[fit.optimizer])
    extra = {"clipnorm": fit.clipnorm} if fit.clipnorm is not None else {}
    try:
        return kind(learning_rate=fit.learning_rate, **extra, **fit.optimizer_args)
    except (TypeError, ValueError) as error:
        raise BadSpec(f"optimizer {fit.optimizer} refuses {fit.optimizer_args}: {error}") from error


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
