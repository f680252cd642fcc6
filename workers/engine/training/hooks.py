"""What acts on a training between its epochs: averaged weights, a rate cut on a plateau, a rate repeated.

A hook has no state beside what `state` returns and the model's and optimizer's variables, which every
checkpoint holds: a training resumed from any of them goes on bit by bit as if nothing had happened.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import keras

from jobs.contracts import measures
from jobs.contracts.fit import FitSpec
from jobs.contracts.schedules import ReduceOnPlateau


class EpochHook:
    """Does nothing; subclasses act at the places that concern them.

    After each epoch a training calls, in this order: `before_validation`; it measures and, if this is
    the best epoch so far, copies the weights; `after_validation`; `after_epoch`; then it may write a
    checkpoint. When it has ended without a best epoch to go back to, `before_validation` is called
    once more, so that the model holds what was measured.

    Attributes:
        acts: whether it does anything; if not, a training need not bring the model up to date for it.
    """

    acts = False

    def before_validation(self, model: Any) -> None:
        """Prepare the model for being measured."""

    def after_validation(self, model: Any) -> None:
        """Take back what `before_validation` did."""

    def after_epoch(self, epoch: int, figures: Mapping[str, float], model: Any) -> None:
        """Act on the figures of `epoch` (from 1), named as in its report."""

    def state(self) -> dict[str, Any]:
        """Return what a checkpoint must hold beside the variables, as JSON values."""
        return {}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from what `state` returned."""


class Averages(EpochHook):
    """Measures the moving averages of the weights, which Keras' optimizer keeps among its variables."""

    acts = True

    def __init__(self) -> None:
        self._own: list[Any] = []

    def before_validation(self, model: Any) -> None:
        """Put the averages in the place of the weights, which are set aside."""
        optimizer = inner(model.optimizer)
        if not int(optimizer.iterations):
            return  # every step overflowed and was skipped: there is no average yet
        weights = model.trainable_variables
        self._own = [weight.value for weight in weights]
        averages = optimizer._model_variables_moving_average
        for weight, average in zip(weights, averages, strict=True):
            weight.assign(keras.ops.copy(average.value))  # predicting may give the buffer away

    def after_validation(self, model: Any) -> None:
        """Put the weights back."""
        if self._own:
            for weight, value in zip(model.trainable_variables, self._own, strict=True):
                weight.assign(value)
        self._own = []


class Plateau(EpochHook):
    """Cuts the learning rate as Keras' `ReduceLROnPlateau` does; the rate itself is a variable."""

    acts = True

    def __init__(self, asked: ReduceOnPlateau) -> None:
        self._callback = keras.callbacks.ReduceLROnPlateau(
            monitor=asked.monitor,
            mode=measures.direction(asked.monitor),
            factor=asked.factor,
            patience=asked.patience,
            min_delta=asked.min_delta,
            cooldown=asked.cooldown,
            min_lr=asked.min_learning_rate,
        )
        self._callback.on_train_begin()

    def after_epoch(self, epoch: int, figures: Mapping[str, float], model: Any) -> None:
        """Count the epoch, cut the rate if it is time."""
        self._callback.set_model(model)
        self._callback.on_epoch_end(epoch - 1, dict(figures))

    def state(self) -> dict[str, Any]:
        """Return best figure, epochs waited and epochs left to cool down."""
        callback = self._callback
        return {"best": callback.best, "wait": callback.wait, "cooldown": callback.cooldown_counter}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on waiting."""
        callback = self._callback
        callback.best, callback.wait = state["best"], state["wait"]
        callback.cooldown_counter = state["cooldown"]


class Replay(EpochHook):
    """Gives each epoch the learning rate it had in an earlier training; past its end the last one.

    A training without validation rows has no plateau to see: it repeats the cuts of the one that had.

    Args:
        rates: the rate at the end of epoch 1, 2, …, at least one.
    """

    acts = True

    def __init__(self, rates: Sequence[float]) -> None:
        self._rates = rates

    def after_epoch(self, epoch: int, figures: Mapping[str, float], model: Any) -> None:  # noqa: ARG002
        """Set the rate of the epoch that follows."""
        inner(model.optimizer).learning_rate = self._rates[min(epoch, len(self._rates) - 1)]


class Together(EpochHook):
    """Several hooks as one. What the first puts in place the last takes back."""

    acts = True

    def __init__(self, *hooks: EpochHook) -> None:
        self._hooks = hooks

    def before_validation(self, model: Any) -> None:
        """Pass it on."""
        for hook in self._hooks:
            hook.before_validation(model)

    def after_validation(self, model: Any) -> None:
        """Pass it on, in reverse."""
        for hook in reversed(self._hooks):
            hook.after_validation(model)

    def after_epoch(self, epoch: int, figures: Mapping[str, float], model: Any) -> None:
        """Pass it on."""
        for hook in self._hooks:
            hook.after_epoch(epoch, figures, model)

    def state(self) -> dict[str, Any]:
        """Return the states by the hooks' names."""
        return {type(hook).__name__: hook.state() for hook in self._hooks}

    def restore(self, state: dict[str, Any]) -> None:
        """Pass each its own."""
        for hook in self._hooks:
            hook.restore(state[type(hook).__name__])


def hook_for(fit: FitSpec, rates: Sequence[float] = ()) -> EpochHook:
    """Return what `fit` asks for between epochs.

    Args:
        fit: what is asked for.
        rates: the learning rates, epoch by epoch, of the training that this one repeats without
            validation rows; empty for one that has them.
    """
    hooks: list[EpochHook] = [Averages()] if fit.ema is not None else []
    if isinstance(fit.schedule, ReduceOnPlateau):
        hooks.append(Replay(rates) if rates else Plateau(fit.schedule))
    return Together(*hooks) if hooks else EpochHook()


def inner(optimizer: Any) -> Any:
    """Return the optimizer itself, unwrapped from dynamic loss scaling."""
    return getattr(optimizer, "inner_optimizer", optimizer)
