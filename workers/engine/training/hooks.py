"""Hooks that run between a training's epochs: weight averaging and learning rate changes.

A hook's state consists of what `state` returns and the model's and optimizer's variables. Checkpoints hold
both, so a training resumed from any checkpoint continues bit for bit as if it had not been interrupted.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import keras

from jobs.spec.sections import measures
from jobs.spec.sections.fit import FitSpec
from jobs.spec.sections.schedules import ReduceOnPlateau
from workers.engine.models.keras_private import moving_averages
from workers.engine.models.optimizer import unwrap_optimizer


class EpochHook:
    """Base class; does nothing.

    After each epoch a training calls `before_validation`; measures and, if this is the best epoch so far,
    copies the weights; then calls `after_validation` and `after_epoch`; then it may write a checkpoint. When
    it ends without a best epoch to restore, `before_validation` is called once more, so that the model has
    the weights that were measured.

    Attributes:
        is_active: whether it does anything. If not, a training need not update the model for it.
        state_key: the key for its state in a checkpoint; the file format includes it.
    """

    is_active = False
    state_key = ""

    def before_validation(self, model: Any) -> None:
        """Prepare the model for validation."""

    def after_validation(self, model: Any) -> None:
        """Undo the changes that `before_validation` made."""

    def after_epoch(self, epoch: int, metrics: Mapping[str, float], model: Any) -> None:
        """Act on the metrics for `epoch` (counted from 1), named as in its report."""

    def state(self) -> dict[str, Any]:
        """Return the state that a checkpoint needs in addition to the variables, as JSON values."""
        return {}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore the state that `state` returned."""


class WeightAveraging(EpochHook):
    """Validates with the weights' moving averages, which Keras' optimizer keeps in its variables."""

    is_active = True
    state_key = "Averages"

    def __init__(self) -> None:
        self._weights: list[Any] = []

    def before_validation(self, model: Any) -> None:
        """Replace the weights by their averages."""
        optimizer = unwrap_optimizer(model.optimizer)
        # Before the first step there is no average: with loss scaling, steps that overflow are skipped.
        if not int(optimizer.iterations):
            return
        weights = model.trainable_variables
        self._weights = [weight.value for weight in weights]
        averages = moving_averages(optimizer)
        for weight, average in zip(weights, averages, strict=True):
            # A copy: prediction may donate the buffer of a weight, which must not be that of the average.
            weight.assign(keras.ops.copy(average.value))

    def after_validation(self, model: Any) -> None:
        """Restore the weights."""
        if self._weights:
            for weight, value in zip(model.trainable_variables, self._weights, strict=True):
                weight.assign(value)
        self._weights = []


class PlateauSchedule(EpochHook):
    """Reduces the learning rate on a plateau with Keras' `ReduceLROnPlateau`.

    The learning rate itself is an optimizer variable.
    """

    is_active = True
    state_key = "Plateau"

    def __init__(self, schedule: ReduceOnPlateau) -> None:
        self._callback = keras.callbacks.ReduceLROnPlateau(
            monitor=schedule.monitor,
            mode=measures.direction(schedule.monitor),
            factor=schedule.factor,
            patience=schedule.patience,
            min_delta=schedule.min_delta,
            cooldown=schedule.cooldown,
            min_lr=schedule.min_learning_rate,
        )
        # Resets the callback; `fit`, which would do it, runs for one epoch at a time or not at all.
        self._callback.on_train_begin()

    def after_epoch(self, epoch: int, metrics: Mapping[str, float], model: Any) -> None:
        """Record the epoch's metrics and reduce the rate if patience has run out."""
        self._callback.set_model(model)
        # Keras counts epochs from 0, and adds the learning rate to the metrics: it gets a copy.
        self._callback.on_epoch_end(epoch - 1, dict(metrics))

    def state(self) -> dict[str, Any]:
        """Return the best value, the epochs waited and the epochs left to cool down."""
        callback = self._callback
        return {"best": callback.best, "wait": callback.wait, "cooldown": callback.cooldown_counter}

    def restore(self, state: dict[str, Any]) -> None:
        """See `EpochHook.restore`."""
        callback = self._callback
        callback.best, callback.wait = state["best"], state["wait"]
        callback.cooldown_counter = state["cooldown"]


class ReplayedSchedule(EpochHook):
    """Gives each epoch the learning rate that it had in an earlier training.

    A training without validation rows cannot detect a plateau, so it repeats the reductions in the training
    that could. After the last recorded rate, that rate is kept.

    Args:
        rates: learning rates after epoch 1, 2, …; at least one.
    """

    is_active = True
    state_key = "Replay"

    def __init__(self, rates: Sequence[float]) -> None:
        self._rates = rates

    def after_epoch(self, epoch: int, metrics: Mapping[str, float], model: Any) -> None:  # noqa: ARG002
        """Set the next epoch's learning rate."""
        # `_rates[epoch]` is that of epoch + 1, since epochs are counted from 1.
        unwrap_optimizer(model.optimizer).learning_rate = self._rates[min(epoch, len(self._rates) - 1)]


class HookList(EpochHook):
    """Calls several hooks in order; `after_validation` in reverse order."""

    is_active = True

    def __init__(self, *hooks: EpochHook) -> None:
        self._hooks = hooks

    def before_validation(self, model: Any) -> None:
        """See `EpochHook.before_validation`."""
        for hook in self._hooks:
            hook.before_validation(model)

    def after_validation(self, model: Any) -> None:
        """See `EpochHook.after_validation`."""
        for hook in reversed(self._hooks):
            hook.after_validation(model)

    def after_epoch(self, epoch: int, metrics: Mapping[str, float], model: Any) -> None:
        """See `EpochHook.after_epoch`."""
        for hook in self._hooks:
            hook.after_epoch(epoch, metrics, model)

    def state(self) -> dict[str, Any]:
        """Return the hooks' states by `state_key`."""
        return {hook.state_key: hook.state() for hook in self._hooks}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore each hook from its own state."""
        for hook in self._hooks:
            hook.restore(state[hook.state_key])


def hook_for(fit: FitSpec, rates: Sequence[float] = ()) -> EpochHook:
    """Return the hook that implements the `fit` settings that act between epochs.

    Args:
        fit: the settings.
        rates: each epoch's learning rate in the training that this one repeats without validation rows;
            empty for a training that has them.
    """
    hooks: list[EpochHook] = [WeightAveraging()] if fit.ema is not None else []
    if isinstance(fit.schedule, ReduceOnPlateau):
        hooks.append(ReplayedSchedule(rates) if rates else PlateauSchedule(fit.schedule))
    return HookList(*hooks) if hooks else EpochHook()
