"""Builds and compiles a Keras model from a spec and the rows it will train on."""

import pkgutil
from dataclasses import dataclass
from typing import Any

import keras
import numpy as np

from jobs.contracts.experiment import ExperimentSpec
from jobs.contracts.features import Features
from jobs.contracts.profile import Profile
from jobs.contracts.signature import InputColumn, Signature, TensorSpec
from jobs.contracts.variables import head_units
from workers.engine.arrays import Array
from workers.engine.data.pixels import count_values, moments
from workers.engine.data.rows import Rows, in_parts
from workers.engine.errors import BadSpec
from workers.engine.models.augment import augmentation, seeded_layers
from workers.engine.models.initial_values import InitialValues
from workers.engine.models.losses import LOSSES, WHILE_TRAINING, loss_name, metric_names
from workers.engine.models.optimizer import make_optimizer
from workers.engine.models.outputs import output_names
from workers.engine.models.precision import scale_loss
from workers.engine.models.templates.embeddings import with_embeddings
from workers.engine.models.templates.site import Site

ACTIVATIONS = {"multiclass": "softmax", "binary": "sigmoid", "multilabel": "sigmoid", "regression": "linear"}


@dataclass(frozen=True)
class Scaling:
    """Statistics of the training part for the normalization.

    Attributes:
        x_mean: per feature, or per channel for images.
        x_variance: likewise.
        y_mean: per target column, for regression; else None.
        y_variance: likewise.
        x_range: smallest and largest value of all features.
    """

    x_mean: Array
    x_variance: Array
    y_mean: Array | None = None
    y_variance: Array | None = None
    x_range: tuple[float, float] = (0.0, 255.0)

    @property
    def y_std(self) -> Array | None:
        """Standard deviation of the target, the unit of a regression's loss; else None."""
        return None if self.y_variance is None else np.sqrt(self.y_variance)


def measure_scaling(x: Rows, y: Array, profile: Profile) -> Scaling:
    """Compute the statistics of the training rows.

    Args:
        x: features of the training rows, (rows, …).
        y: targets of the training rows.
        profile: of the data set.
    """
    if isinstance(x, np.ndarray):
        mean, variance = _moments(x, tuple(range(x.ndim - 1)))
        value_range = float(x.min()), float(x.max())
    else:
        mean, variance, value_range = _moments_in_parts(x)
    for block in profile.blocks:
        # Words are 0 or 1 and weights at most 1, and an index is no measure.
        if block.kind != "number":
            positions = slice(block.start, block.start + block.positions)
            mean[positions], variance[positions] = 0.0, 1.0
    if profile.task != "regression":
        return Scaling(mean, variance, x_range=value_range)
    return Scaling(mean, variance, *_moments(y, (0,)), x_range=value_range)


def target_scale(y: Array, profile: Profile) -> Array | None:
    """Return the unit of a regression's loss; see `Scaling.y_std`.

    Args:
        y: targets of the training rows.
        profile: of the data set.
    """
    return np.sqrt(_moments(y, (0,))[1]) if profile.task == "regression" else None


def _moments(values: Array, axes: tuple[int, ...]) -> tuple[Array, Array]:
    if values.dtype == np.uint8 and values.ndim == 4:
        # The variance of NumPy needs eight bytes for each pixel of all images.
        mean, variance = moments(count_values(values))
    else:
        mean = values.mean(axis=axes, dtype=np.float64)
        variance = values.var(axis=axes, dtype=np.float64)
    return mean, _usable(variance)


def _usable(variance: Array) -> Array:
    # A constant feature gets variance 1: another value of it in serving would be divided by almost 0.
    return np.where(variance > 1e-12, variance, 1.0)


def _moments_in_parts(x: Rows) -> tuple[Array, Array, tuple[float, float]]:
    """Return mean, variance and range of the features of vectors that are not in memory.

    Each row is read once: the squared deviations of two parts are added with the distance of their means
    (Chan, Golub and LeVeque 1979, Updating formulae and a pairwise algorithm for computing sample variances).
    """
    rows, low, high = 0, np.inf, -np.inf
    mean, deviations = np.zeros(x.shape[1:]), np.zeros(x.shape[1:])
    for part in in_parts(x):
        added = rows + len(part)
        distance = part.mean(axis=0, dtype=np.float64) - mean
        deviations += part.var(axis=0, dtype=np.float64) * len(part)
        deviations += distance**2 * (rows * len(part) / added)
        mean += distance * (len(part) / added)
        rows, low, high = added, min(low, float(part.min())), max(high, float(part.max()))
    return mean, _usable(deviations / rows), (low, high)


def build(
    spec: ExperimentSpec, profile: Profile, scaling: Scaling, *, name: str, seed: int, augmented: bool = False
) -> Any:
    """Return the functional model `m_<name>`, not compiled: from raw inputs to final predictions.

    See `build_restartable`, which also returns the initial values for other seeds.
    """
    return build_restartable(spec, profile, scaling, name=name, seed=seed, augmented=augmented)[0]


def build_restartable(
    spec: ExperimentSpec, profile: Profile, scaling: Scaling, *, name: str, seed: int, augmented: bool = False
) -> tuple[Any, InitialValues]:
    """Return the functional model `m_<name>`, not compiled, and the initial values of its variables.

    The input is (rows, *profile.input_shape) float32, as stored. The output is float32: class probabilities,
    (rows, classes); for binary the probability of the second class, (rows, 1); for multilabel one probability
    per label; for regression the targets in their own unit.

    Args:
        spec: with all hyperparameters filled in.
        profile: of the data set.
        scaling: statistics for the normalization.
        name: of the model, without `m_`.
        seed: of the initial values and of all random layers.
        augmented: whether to include the augmentation of the spec; saved models never do.

    Raises:
        BadSpec: the template or the augmentation does not support the data.
    """
    # Keras initializes variables that are created in this scope when it ends. Until then, the seeds of their
    # initializers can still be replaced.
    with keras.StatelessScope():
        model = _assemble(spec, profile, scaling, name, augmented=augmented)
        start = InitialValues(seeded_layers(model))
        start.set_up(seed)
    return model, start


def _assemble(spec: ExperimentSpec, profile: Profile, scaling: Scaling, name: str, *, augmented: bool) -> Any:
    info, args = spec.model.info, spec.model.resolved()
    if (refusal := spec.model.refusal(profile)) is not None:
        raise BadSpec(refusal)
    inputs = keras.Input(profile.input_shape, name="input", dtype="float32")
    site = Site(spec.precision, profile, args, inputs)
    normalize = keras.layers.Normalization(
        mean=scaling.x_mean.tolist(), variance=scaling.x_variance.tolist(), **site.named("normalize")
    )
    varied = _augmented(site, spec, scaling, inputs) if augmented else inputs
    vector = with_embeddings(site, normalize(varied), tokens=not info.reads_tokens)
    features = pkgutil.resolve_name(info.builder)(site, args, vector)
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
    transformations = spec.fit.augmentation
    if transformations is None:
        return inputs
    if site.profile.kind != "image":
        raise BadSpec(f"augmentation needs images, but this data set has {site.profile.kind}s")
    layer = augmentation(transformations, scaling.x_range)
    return inputs if layer is None else layer(inputs)


def compile_model(
    model: Any, spec: ExperimentSpec, profile: Profile, scaling: Scaling, *, steps: int
) -> None:
    """Compile a model for training.

    Args:
        model: from `build`.
        spec: loss, metrics, optimizer and precision.
        profile: of the data set.
        scaling: statistics of the training rows.
        steps: steps per epoch.

    Raises:
        BadSpec: a loss or metric does not apply to the task, or an optimizer argument is unknown.
    """
    names = metric_names(spec.fit, profile.task)
    kind = getattr(keras.losses, LOSSES[loss_name(spec.fit, profile.task)][0])
    if scaling.y_std is None:
        # Keras' default divides by the number of rows, so the padding rows of weight 0 would lower the loss
        loss = kind(reduction="mean_with_sample_weight")
    else:
        loss = _StandardizedLoss(kind, scaling.y_std)
    model.compile(
        optimizer=scale_loss(make_optimizer(spec.fit, steps), spec.precision),
        loss=loss,
        weighted_metrics=[_metric(name, profile) for name in names if name in WHILE_TRAINING],
        steps_per_execution=spec.fit.steps_per_execution,
        # `scale_loss` does it; Keras would wrap the optimizer again and ignore a fixed factor
        auto_scale_loss=False,
        jit_compile=True,
    )


class _StandardizedLoss(keras.losses.Loss):
    """A regression loss in units of the target's standard deviation.

    The model predicts in the target's own unit; without this, the size of the gradients would depend on it.
    """

    def __init__(self, kind: Any, scale: Array) -> None:
        super().__init__(name="loss", reduction="mean_with_sample_weight")
        self._each_row = kind(reduction=None)
        self._scale = scale.astype(np.float32)

    def call(self, y_true: Any, y_pred: Any) -> Any:
        """Return the loss of each row, (rows,)."""
        return self._each_row.call(y_true / self._scale, y_pred / self._scale)


def _metric(name: str, profile: Profile) -> Any:
    if name == "accuracy":
        if profile.task == "multiclass":
            return keras.metrics.SparseCategoricalAccuracy(name=name)
        return keras.metrics.BinaryAccuracy(name=name)
    return {"mse": keras.metrics.MeanSquaredError, "mae": keras.metrics.MeanAbsoluteError}[name](name=name)


def signature_of(model: Any, features: Features | None = None) -> Signature:
    """Return the model's inputs and outputs, without the batch dimension.

    Args:
        model: the model.
        features: the pipeline in the model's file, if there is one.
    """
    columns = () if features is None else features.columns
    return Signature(
        window=None if features is None else features.window,
        columns=tuple(InputColumn(name=column.column, type=column.type) for column in columns),
        inputs=tuple(TensorSpec(name=t.name, dtype=t.dtype, shape=tuple(t.shape[1:])) for t in model.inputs),
        outputs=tuple(
            TensorSpec(name=name, dtype=t.dtype, shape=tuple(t.shape[1:]))
            for name, t in zip(output_names(model), model.outputs, strict=True)
        ),
    )
