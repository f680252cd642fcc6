"""Trains an epoch for several trainings in one call: Keras' `train_step` under `jax.vmap`.

The trainings share a program and its rows. Each has its own state, hyperparameters and row order. Whether
one call is faster than one call for each training depends on the model and the device, so it is timed on the
model itself and stored in `TimingResults`.
"""

import logging
import math
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

import jax
import numpy as np

from workers.engine.arrays import Array
from workers.engine.compiled.aot import AheadOfTimeFunction
from workers.engine.compiled.autotune import MAX_TIME_RATIO, timing_clock
from workers.engine.compiled.state import Leaves, State, copied
from workers.engine.compiled.timing_comparison import TimingComparison, Variant
from workers.engine.compiled.timing_results import TimingResults, cost_name
from workers.engine.compiled.training_time import TrainingTime
from workers.engine.evaluation.metric_results import numbers_of

log = logging.getLogger(__name__)

MAX_EPOCHS = 100
"""The most epochs of a measurement."""
MAX_VMAPPED_SECONDS = 2.0
"""Maximum duration of one epoch of all trainings of a call: no request is served during a call."""


class StackedState(NamedTuple):
    """One training's state inside the stacked states of several.

    It stays stacked between vmapped epochs and is copied out only when it is needed alone.

    Attributes:
        stack: all trainings' states, each leaf (trainings, …).
        position: this training's position in the stack.
    """

    stack: State
    position: int

    def to_host(self) -> State:
        """Copy the state to the host. Call it before the stack is donated to the next call."""
        # Sliced on the host: on the device JAX would compile a program for each shape.
        state: State = jax.tree.map(lambda leaf: np.array(np.asarray(leaf)[self.position]), self.stack)
        return state


EpochResult = tuple[State | StackedState, dict[str, float], Any]
"""After an epoch: the state, loss and metrics by name, and the result of `ModelFunctions.validate`."""


class EpochInputs(NamedTuple):
    """An epoch's inputs that belong to one training.

    Attributes:
        state: before the epoch.
        hyperparameters: traced values, (hyperparameters,).
        rows: each batch's row numbers, (batches, batch size).
        weights: their weights, (batches, batch size).
    """

    state: State | StackedState
    hyperparameters: Array
    rows: Array
    weights: Array


class SharedInputs(NamedTuple):
    """An epoch's inputs that all trainings in a call share.

    Attributes:
        x, y: features and targets on the device.
        validation: the validation rows on the device: arguments of `ModelFunctions.validate`.
        initial_metrics: the metrics' variables before an epoch's first batch.
    """

    x: Any
    y: Any
    validation: Sequence[Any]
    initial_metrics: Leaves


class VmappedProgram:
    """Runs an epoch for several trainings with one program.

    Args:
        epoch: one training's epoch, `ModelFunctions.epoch`.
        compiled_epoch: the same, compiled.
        compile_function: makes an `AheadOfTimeFunction` under the program's key.
        timings: the program's timing results.
        training_time: the program's; limits the time that timing takes.
    """

    def __init__(
        self,
        epoch: Callable[..., Any],
        compiled_epoch: AheadOfTimeFunction,
        compile_function: Callable[..., AheadOfTimeFunction],
        timings: TimingResults,
        training_time: TrainingTime,
    ) -> None:
        self._epoch = epoch
        self._compiled_epoch = compiled_epoch
        self._compiled_vmapped = compile_function(self._vmapped_epoch, donated=0)
        self._timings = timings
        self._training_time = training_time
        self._comparisons: dict[int, TimingComparison] = {}
        self._compiled_counts: set[int] = set()

    def is_faster(self, count: int, active: int) -> bool:
        """Return whether one call for `count` trainings is known to be faster than `active` single calls.

        Args:
            count: trainings that the program is compiled for.
            active: how many still train; the others' results are discarded.
        """
        cost = self._timings.relative_cost(count)
        return cost is not None and cost < MAX_TIME_RATIO * active

    def is_timed(self, count: int) -> bool:
        """Return whether a call for `count` trainings has been timed."""
        return self._timings.relative_cost(count) is not None

    def train(self, inputs: Sequence[EpochInputs], shared: SharedInputs) -> list[EpochResult]:
        """Train each training for one epoch. Their states are donated and must not be used again."""
        x, y, validation, initial_metrics = shared
        # A single training uses the program without `vmap`, with which the other one is compared.
        if len(inputs) == 1:
            ((state, hyperparameters, rows, weights),) = inputs
            state = (*unstacked(state)[:3], initial_metrics)
            state, logs, outputs = self._compiled_epoch(
                state, hyperparameters, x, y, rows, weights, 0, len(rows), *validation
            )
            return [(state, numbers_of(logs), jax.tree.map(np.asarray, outputs))]
        states, *rest = zip(*inputs, strict=True)
        hyperparameters, rows, weights = map(np.stack, rest)
        after, logs, outputs = self._compiled_vmapped(
            _stacked(states), hyperparameters, x, y, rows, weights, initial_metrics, *validation
        )
        stacked = jax.tree.map(np.asarray, (logs, outputs))
        results: list[EpochResult] = []
        for index in range(len(inputs)):
            metrics, outcome = jax.tree.map(itemgetter(index), stacked)
            results.append((StackedState(after, index), numbers_of(metrics), outcome))
        return results

    def measure(self, inputs: EpochInputs, count: int, shared: SharedInputs, epochs_left: int) -> None:
        """Measure one call for `count` trainings once more, unless its cost is known.

        Nothing is done while it does not pay yet, or if a call would take too long.

        Args:
            inputs: any training's inputs; not donated.
            count: how many trainings there are.
            shared: see `train`.
            epochs_left: all trainings' epochs until they end, summed.
        """
        spent = self._training_time
        if self.is_timed(count) or not spent.steps:
            return
        seconds = len(inputs.rows) * spent.seconds_per_step
        if count * seconds > MAX_VMAPPED_SECONDS:
            return
        # If the process dies of it, perhaps for lack of memory, no later process tries the same again.
        comparison = self._comparisons.setdefault(
            count,
            TimingComparison(
                spent, work=count, guard=lambda: self._timings.assumed(cost_name(count), repr(math.inf))
            ),
        )

        def variant(trainings: int) -> Variant:
            return Variant(
                lambda epochs: self._time(inputs, trainings, shared, epochs),
                trainings in self._compiled_counts,
            )

        try:
            cost = comparison.measure_next(
                variant(1),
                variant(count),
                seconds=seconds,
                max_units=MAX_EPOCHS,
                seconds_left=epochs_left * seconds,
            )
        # For example out of memory: the trainings run one by one.
        except jax.errors.JaxRuntimeError:
            log.warning("%s trainings cannot be run in one call", count, exc_info=True)
            cost = math.inf
        if cost is not None:
            self._timings.set_relative_cost(count, cost)

    def _time(self, inputs: EpochInputs, count: int, shared: SharedInputs, epochs: int) -> float:
        """Return how long `epochs` epochs take for `count` trainings, in seconds."""
        state = unstacked(inputs.state)
        copies = [inputs._replace(state=copied(state)) for _ in range(count)]
        now = timing_clock()
        began = now()
        for _ in range(epochs):
            copies = [inputs._replace(state=trained) for trained, _, _ in self.train(copies, shared)]
        self._compiled_counts.add(count)
        return now() - began

    def _vmapped_epoch(
        self,
        stack: State,
        hyperparameters: Any,
        x: Any,
        y: Any,
        rows: Any,
        weights: Any,
        initial_metrics: Leaves,
        *validation: Any,
    ) -> tuple[State, dict[str, Any], Any]:
        """Train several trainings for one epoch.

        Args:
            stack: states, (trainings, …).
            hyperparameters: (trainings, hyperparameters).
            x, y, initial_metrics, validation: see `SharedInputs`.
            rows, weights: (trainings, batches, batch size).
        """

        def train_one(state: State, hyperparameters: Any, rows: Any, weights: Any) -> Any:
            state = (*state[:3], initial_metrics)
            return self._epoch(state, hyperparameters, x, y, rows, weights, 0, len(rows), *validation)

        trained: tuple[State, dict[str, Any], Any] = jax.vmap(train_one)(
            stack, hyperparameters, rows, weights
        )
        return trained


def _stacked(states: Sequence[State | StackedState]) -> State:
    """Return the states as one, each leaf (trainings, …)."""
    first = states[0]
    # States that come from one vmapped epoch, in the same order, are stacked already: no copy is needed.
    if isinstance(first, StackedState) and all(
        isinstance(state, StackedState) and state.stack is first.stack and state.position == index
        for index, state in enumerate(states)
    ):
        return first.stack
    stack: State = jax.tree.map(lambda *leaves: np.stack([*map(np.asarray, leaves)]), *map(unstacked, states))
    return stack


def unstacked(state: State | StackedState) -> State:
    """Return one training's state, copied to the host if it is part of a stack."""
    return state.to_host() if isinstance(state, StackedState) else state
