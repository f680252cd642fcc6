"""Builds and compiles a Keras model from a spec and the rows it will train on."""

import pkgutil
from collections.abc import Callable
from typing import Any

import keras

from jobs.spec.data.features import Features
from jobs.spec.data.profile import Profile
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.plan.variables import head_units
from jobs.spec.signature import InputColumn, Signature, TensorSpec
from workers.engine.arrays import Array
from workers.engine.errors import BadSpec
from workers.engine.models.augment import augmentation, seeded_layers
from workers.engine.models.head import ACTIVATIONS, in_unit_of_target
from workers.engine.models.initial_values import InitialValues
from workers.engine.models.losses import LOSSES, WHILE_TRAINING, loss_name, metric_names
from workers.engine.models.optimizer import make_optimizer, scale_learning_rates
from workers.engine.models.outputs import output_names
from workers.engine.models.precision import check_computable, policy_of, scale_loss, to_float8
from workers.engine.models.scaling import Scaling, normalization
from workers.engine.models.templates.embeddings import with_embeddings
from workers.engine.models.templates.site import Site


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
    """Return the functional model `m_<name>`, not compiled, and its variables' initial values.

    The input is (rows, *profile.input_shape) float32, as stored. The output is float32: class probabilities,
    (rows, classes); for binary the second class's probability, (rows, 1); for multilabel one probability
    per label; for regression the targets in their own unit.

    Args:
        spec: with all hyperparameters filled in.
        profile: the data set's profile.
        scaling: statistics for the normalization.
        name: the model's name, without `m_`.
        seed: for the initial values and all random layers.
        augmented: whether to include the spec's augmentation; saved models never do.

    Raises:
        BadSpec: the template or the augmentation does not support the data.
    """
    if assembly := spec.model.info.assembly:
        assemble: Callable[..., tuple[Any, InitialValues]] = pkgutil.resolve_name(assembly)
        return assemble(spec, profile, scaling, name=name, seed=seed, augmented=augmented)
    # Keras initializes variables that are created in this scope when it ends. Until then, the seeds of their
    # initializers can still be replaced.
    with keras.StatelessScope():
        model = _assemble(spec, profile, scaling, name, augmented=augmented)
        to_float8(model, lambda layer: policy_of(layer.name, spec.precision))
        start = InitialValues(seeded_layers(model))
        start.set_up(seed)
    return model, start


def _assemble(spec: ExperimentSpec, profile: Profile, scaling: Scaling, name: str, *, augmented: bool) -> Any:
    info, args = spec.model.info, spec.model.resolved()
    if (refusal := spec.model.refusal(profile)) is not None:
        raise BadSpec(refusal)
    inputs = keras.Input(profile.input_shape, name="input", dtype="float32")
    site = Site(spec.precision, profile, args, inputs)
    normalize = normalization(scaling, **site.named("normalize"))
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
    outputs = in_unit_of_target(outputs, scaling, **site.named("target_scale"))
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
        profile: the data set's profile.
        scaling: the training rows' statistics.
        steps: steps per epoch.

    Raises:
        BadSpec: a loss or metric does not apply to the task, an optimizer argument is unknown, or the device
            cannot compute in a layer's type.
    """
    check_computable(model)
    names = metric_names(spec.fit, profile.task)
    kind = getattr(keras.losses, LOSSES[loss_name(spec.fit, profile.task)][0])
    if scaling.y_std is None:
        # Keras' default divides by the number of rows, so the padding rows of weight 0 would lower the loss
        loss = kind(reduction="mean_with_sample_weight")
    else:
        loss = _StandardizedLoss(kind, scaling.y_std)
    optimizer = make_optimizer(spec.fit, steps)
    scale_learning_rates(optimizer, model, spec.model.resolved())
    model.compile(
        optimizer=scale_loss(optimizer, spec.precision, model),
        loss=loss,
        weighted_metrics=[_metric(name, profile) for name in names if name in WHILE_TRAINING],
        steps_per_execution=spec.fit.steps_per_execution,
        # `scale_loss` does it; Keras would wrap the optimizer again and ignore a fixed factor
        auto_scale_loss=False,
        jit_compile=True,
    )


class _StandardizedLoss(keras.losses.Loss):
    """A regression loss whose unit is the target's standard deviation.

    The model predicts in the target's own unit; without this, the gradients' size would depend on it.
    """

    def __init__(self, kind: Any, scale: Array) -> None:
        super().__init__(name="loss", reduction="mean_with_sample_weight")
        self._each_row = kind(reduction=None)
        self._scale = scale.astype(keras.config.floatx())

    def call(self, y_true: Any, y_pred: Any) -> Any:
        """Return each row's loss, (rows,)."""
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
