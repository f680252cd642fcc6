"""Creates the optimizer for a fit spec with its learning rate schedule."""

from collections.abc import Callable
from typing import Any

import keras

from jobs.spec.base import Frozen
from jobs.spec.sections import schedules as spec
from jobs.spec.sections.fit import CLIPS, FitSpec
from workers.engine.errors import BadSpec
from workers.engine.models import keras_private

OPTIMIZERS = {
    "adam": "Adam",
    "adamw": "AdamW",
    "nadam": "Nadam",
    "rmsprop": "RMSprop",
    "sgd": "SGD",
    "adagrad": "Adagrad",
    "lion": "Lion",
}
RATE_FACTOR_ARGUMENT = "rate_factor_argument"
"""Attribute of layers, and of their optimizer: the name of the argument that multiplies their learning
rate."""
RATE_FACTOR = "rate_factor"
"""Attribute of an optimizer with the value of that argument."""


def make_optimizer(fit: FitSpec, steps: int) -> Any:
    """Return the optimizer for a fit spec.

    Args:
        fit: the spec.
        steps: steps per epoch; converts a schedule's epochs to steps.

    Raises:
        BadSpec: the optimizer rejects its arguments.
    """
    kind = getattr(keras.optimizers, OPTIMIZERS[fit.optimizer])
    named = {name: value for name in CLIPS if (value := getattr(fit, name)) is not None}
    if fit.ema is not None:
        named |= {
            "use_ema": True,
            "ema_momentum": fit.ema.momentum,
            "ema_overwrite_frequency": fit.ema.overwrite_frequency,
        }
    try:
        optimizer = kind(learning_rate=learning_rate(fit, steps), **named, **fit.optimizer_arguments())
    except (TypeError, ValueError) as error:
        raise BadSpec(f"optimizer {fit.optimizer} rejects {fit.optimizer_args}: {error}") from error
    # Keras overwrites the weights with their averages whenever `fit` returns, here after each epoch;
    # `training.hooks.WeightAveraging` does it for validation only
    optimizer.finalize_variable_values = _keep_weights
    return optimizer


def scale_learning_rates(optimizer: Any, model: Any, args: Frozen) -> None:
    """Multiply the learning rate and the weight decay in layers that have a `RATE_FACTOR_ARGUMENT`.

    The factor is an optimizer attribute, which compiled steps replace by an argument. It changes no
    optimizer variable, so checkpoints are the same as for any training.

    Args:
        optimizer: made by `make_optimizer`.
        model: has the layers.
        args: the model's arguments.
    """
    slower = [part for part in keras_private.layers_inside(model) if hasattr(part, RATE_FACTOR_ARGUMENT)]
    if not slower:
        return
    marked = {id(variable) for layer in slower for variable in layer.variables}
    # All of them have the same argument.
    optimizer.rate_factor_argument = getattr(slower[0], RATE_FACTOR_ARGUMENT)
    set_rate_factor(optimizer, args)
    update_step = optimizer.update_step

    def rate_of(variable: Any, learning_rate: Any) -> Any:
        rate = keras.ops.cast(learning_rate, variable.dtype)
        if id(variable) not in marked:
            return rate
        return rate * keras.ops.cast(optimizer.rate_factor, variable.dtype)

    def scaled_update_step(gradient: Any, variable: Any, learning_rate: Any) -> None:
        update_step(gradient, variable, rate_of(variable, learning_rate))

    def scaled_weight_decay(variables: Any) -> None:
        # As in Keras, whose own method has one rate for all variables.
        for variable in variables if optimizer.weight_decay is not None else ():
            if keras_private.has_weight_decay(optimizer, variable):
                decay = keras.ops.cast(optimizer.weight_decay, variable.dtype)
                rate = rate_of(variable, optimizer.learning_rate)
                variable.assign(variable - variable * decay * rate)

    optimizer.update_step = scaled_update_step
    keras_private.replace_weight_decay(optimizer, scaled_weight_decay)


def set_rate_factor(optimizer: Any, args: Frozen) -> None:
    """Set some layers' learning rate factor to the one in these arguments, if there is one."""
    if hasattr(optimizer, RATE_FACTOR_ARGUMENT):
        setattr(optimizer, RATE_FACTOR, getattr(args, getattr(optimizer, RATE_FACTOR_ARGUMENT)))


def ensure_built(model: Any) -> None:
    """Create the optimizer's variables, once: with loss scaling Keras would create some again."""
    if not model.optimizer.built:
        model.optimizer.build(model.trainable_variables)


def unwrap_optimizer(optimizer: Any) -> Any:
    """Return the optimizer inside Keras' `LossScaleOptimizer`, or the optimizer itself."""
    return getattr(optimizer, "inner_optimizer", optimizer)


def _keep_weights(variables: Any) -> None:
    """Do nothing: training continues with its own weights."""


def learning_rate(fit: FitSpec, steps: int) -> Any:
    """Return the learning rate: a number, or a Keras schedule over the steps, counted from 0."""
    make = _SCHEDULES.get(type(fit.schedule))
    return fit.learning_rate if make is None else make(fit, fit.schedule, steps)


def is_scheduled(fit: FitSpec) -> bool:
    """Return whether the learning rate depends on the step; if not, it is an optimizer variable."""
    return type(fit.schedule) in _SCHEDULES


def _in_steps(epochs: float, steps: int) -> int:
    # Keras rejects schedules of 0 steps
    return max(round(epochs * steps), 1)


def _cosine(fit: FitSpec, schedule: spec.Cosine, steps: int) -> Any:
    over = _in_steps(schedule.epochs or fit.epochs, steps)
    return keras.optimizers.schedules.CosineDecay(fit.learning_rate, over, alpha=schedule.alpha)


def _warmup_cosine(fit: FitSpec, schedule: spec.WarmupCosine, steps: int) -> Any:
    up = _in_steps(schedule.warmup_epochs, steps)
    down = max(_in_steps(schedule.epochs or fit.epochs, steps) - up, 1)
    return keras.optimizers.schedules.CosineDecay(
        0.0, down, alpha=schedule.alpha, warmup_target=fit.learning_rate, warmup_steps=up
    )


def _cosine_restarts(fit: FitSpec, schedule: spec.CosineRestarts, steps: int) -> Any:
    return keras.optimizers.schedules.CosineDecayRestarts(
        fit.learning_rate,
        _in_steps(schedule.first_epochs, steps),
        t_mul=schedule.t_mul,
        m_mul=schedule.m_mul,
        alpha=schedule.alpha,
    )


def _exponential(fit: FitSpec, schedule: spec.Exponential | spec.Step, steps: int) -> Any:
    return keras.optimizers.schedules.ExponentialDecay(
        fit.learning_rate,
        _in_steps(schedule.every, steps),
        schedule.factor,
        staircase=isinstance(schedule, spec.Step),
    )


def _polynomial(fit: FitSpec, schedule: spec.Polynomial, steps: int) -> Any:
    return keras.optimizers.schedules.PolynomialDecay(
        fit.learning_rate,
        _in_steps(schedule.epochs or fit.epochs, steps),
        end_learning_rate=fit.learning_rate * schedule.alpha,
        power=schedule.power,
    )


def _piecewise(fit: FitSpec, schedule: spec.Piecewise, steps: int) -> Any:
    # A boundary in Keras is the last step with the previous rate.
    boundaries = [epoch * steps - 1 for epoch in schedule.at]
    rates = [fit.learning_rate * schedule.factor**i for i in range(len(schedule.at) + 1)]
    return keras.optimizers.schedules.PiecewiseConstantDecay(boundaries, rates)


_SCHEDULES: dict[type, Callable[[FitSpec, Any, int], Any]] = {
    spec.Cosine: _cosine,
    spec.WarmupCosine: _warmup_cosine,
    spec.CosineRestarts: _cosine_restarts,
    spec.Exponential: _exponential,
    spec.Step: _exponential,
    spec.Polynomial: _polynomial,
    spec.Piecewise: _piecewise,
}
"""Schedules over steps. Others change the rate between epochs; see `training.hooks`."""
