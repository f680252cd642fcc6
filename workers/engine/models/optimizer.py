"""Makes the optimizer that a fit asks for, its learning rate over the steps included."""

from collections.abc import Callable
from typing import Any

import keras

from jobs.contracts import schedules as spec
from jobs.contracts.fit import CLIPS, FitSpec
from workers.engine.errors import BadSpec

OPTIMIZERS = {
    "adam": "Adam",
    "adamw": "AdamW",
    "nadam": "Nadam",
    "rmsprop": "RMSprop",
    "sgd": "SGD",
    "adagrad": "Adagrad",
    "lion": "Lion",
}


def make_optimizer(fit: FitSpec, steps: int) -> Any:
    """Return the optimizer that `fit` names.

    Args:
        fit: what is asked for.
        steps: steps an epoch; a schedule's epochs are counted in them.

    Raises:
        BadSpec: the optimizer refuses its arguments.
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
        made = kind(learning_rate=learning_rate(fit, steps), **named, **fit.optimizer_arguments())
    except (TypeError, ValueError) as error:
        raise BadSpec(f"optimizer {fit.optimizer} refuses {fit.optimizer_args}: {error}") from error
    # Keras puts the averages into the weights whenever `fit` returns, for us each epoch: see `epochs`.
    made.finalize_variable_values = _leave_the_weights
    return made


def ensure_built(model: Any) -> None:
    """Let a model's optimizer make its variables, once: under loss scaling Keras would make some again."""
    if not model.optimizer.built:
        model.optimizer.build(model.trainable_variables)


def _leave_the_weights(variables: Any) -> None:
    """Do nothing: training goes on from its own weights."""


def learning_rate(fit: FitSpec, steps: int) -> Any:
    """Return the learning rate: a number, or a Keras schedule over steps counted from 0."""
    make = _SCHEDULES.get(type(fit.schedule))
    return fit.learning_rate if make is None else make(fit, fit.schedule, steps)


def is_scheduled(fit: FitSpec) -> bool:
    """Say whether the rate is a function of the steps; if not, it is a variable of the optimizer."""
    return type(fit.schedule) in _SCHEDULES


def _in_steps(epochs: float, steps: int) -> int:
    return max(round(epochs * steps), 1)


def _cosine(fit: FitSpec, asked: spec.Cosine, steps: int) -> Any:
    over = _in_steps(asked.epochs or fit.epochs, steps)
    return keras.optimizers.schedules.CosineDecay(fit.learning_rate, over, alpha=asked.alpha)


def _warmup_cosine(fit: FitSpec, asked: spec.WarmupCosine, steps: int) -> Any:
    up = _in_steps(asked.warmup_epochs, steps)
    down = max(_in_steps(asked.epochs or fit.epochs, steps) - up, 1)
    return keras.optimizers.schedules.CosineDecay(
        0.0, down, alpha=asked.alpha, warmup_target=fit.learning_rate, warmup_steps=up
    )


def _cosine_restarts(fit: FitSpec, asked: spec.CosineRestarts, steps: int) -> Any:
    return keras.optimizers.schedules.CosineDecayRestarts(
        fit.learning_rate,
        _in_steps(asked.first_epochs, steps),
        t_mul=asked.t_mul,
        m_mul=asked.m_mul,
        alpha=asked.alpha,
    )


def _exponential(fit: FitSpec, asked: spec.Exponential | spec.Step, steps: int) -> Any:
    return keras.optimizers.schedules.ExponentialDecay(
        fit.learning_rate,
        _in_steps(asked.every, steps),
        asked.factor,
        staircase=isinstance(asked, spec.Step),
    )


def _polynomial(fit: FitSpec, asked: spec.Polynomial, steps: int) -> Any:
    return keras.optimizers.schedules.PolynomialDecay(
        fit.learning_rate,
        _in_steps(asked.epochs or fit.epochs, steps),
        end_learning_rate=fit.learning_rate * asked.alpha,
        power=asked.power,
    )


def _piecewise(fit: FitSpec, asked: spec.Piecewise, steps: int) -> Any:
    # Keras' boundary is the last step of the piece before it
    boundaries = [epoch * steps - 1 for epoch in asked.at]
    rates = [fit.learning_rate * asked.factor**i for i in range(len(asked.at) + 1)]
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
"""What is not here keeps its rate over the steps; `epochs.Plateau` cuts it between epochs."""
