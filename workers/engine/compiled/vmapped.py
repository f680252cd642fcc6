"""An epoch of several trainings in one call: Keras' `train_step` under `vmap`, a lane for each training.

The lanes share a program and its rows; each has its own state, dials and order of rows. Whether that is
faster than one after another depends on model and device, so it is timed on the model itself: `Choice` keeps
the price.
"""

import logging
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from workers.engine.compiled.aot import Ahead
from workers.engine.compiled.autotune import CLEARLY, ROUNDS, TRIAL_SECONDS, Choice, clock
from workers.engine.compiled.state import Leaves, State
from workers.engine.data.table import Array

log = logging.getLogger(__name__)


class Slice(NamedTuple):
    """The state of one lane within that of all, (lanes, …): cut out only where somebody needs it alone."""

    stack: State
    lane: int

    def cut(self) -> State:
        """Copy it to the host, before the stack is consumed."""
        state: State = jax.tree.map(lambda leaf: np.array(np.asarray(leaf)[self.lane]), self.stack)
        return state


Trained = tuple[State | Slice, dict[str, float], Array]
"""After an epoch: the state, loss and metrics, predictions for the held rows."""


class Lane(NamedTuple):
    """What an epoch of one training begins with; rows and weights are (batches, batch)."""

    state: State | Slice
    dials: Array
    rows: Array
    weights: Array


class Shared(NamedTuple):
    """What all lanes use: features and targets on the device, the held rows, metrics that are clear."""

    x: Any
    y: Any
    held: Any
    clear: Leaves


class Stacked:
    """Trains lanes of one program.

    Args:
        whole: an epoch of one training: `Program._steps_and_figures`.
        alone: the same, compiled.
        ahead: compiles a function under the program's key.
        choice: keeps the prices.
    """

    def __init__(
        self, whole: Callable[..., Any], alone: Ahead, ahead: Callable[..., Ahead], choice: Choice
    ) -> None:
        self._whole = whole
        self._alone = alone
        self._together = ahead(self._side_by_side, donated=0)
        self._choice = choice

    def pays(self, lanes: int, open_: int) -> bool:
        """Say whether a call of `lanes` is known to be faster than `open_` calls of one.

        Args:
            lanes: as many as the program is compiled for.
            open_: of which so many still train; the others are computed for nothing.
        """
        price = self._choice.price(lanes)
        return price is not None and price < CLEARLY * open_

    def is_known(self, lanes: int) -> bool:
        """Say whether so many lanes have been timed."""
        return self._choice.price(lanes) is not None

    def train(self, lanes: Sequence[Lane], shared: Shared) -> list[Trained]:
        """Train each lane for an epoch; their states are consumed."""
        x, y, held, clear = shared
        if len(lanes) == 1:
            ((state, dials, rows, weights),) = lanes
            state = (*_cut(state)[:3], clear)
            state, logs, outputs = self._alone(state, dials, x, y, rows, weights, 0, len(rows), held)
            return [(state, {name: float(value) for name, value in logs.items()}, np.asarray(outputs))]
        states, *rest = zip(*lanes, strict=True)
        dials, rows, weights = map(np.stack, rest)
        after, logs, outputs = self._together(_stack(states), dials, x, y, rows, weights, held, clear)
        told, predictions = {name: np.asarray(values) for name, values in logs.items()}, np.asarray(outputs)
        return [
            (Slice(after, lane), {name: float(told[name][lane]) for name in told}, predictions[lane])
            for lane in range(len(lanes))
        ]

    def seconds_a_round(self, lanes: int, epoch: float) -> float:
        """Return what a round of `measure` takes, about, if an epoch of one takes so many seconds."""
        return epoch * (_epochs_a_round(epoch) + lanes * _epochs_a_round(lanes * epoch))

    def measure(self, lane: Lane, lanes: int, shared: Shared, epoch: float) -> None:
        """Time a call of one and of `lanes` on copies of the very state, and keep the price.

        Until it is known the price is infinite: whoever dies of finding it leaves that behind.

        Args:
            lane: consumed by nobody.
            lanes: how many.
            shared: see `train`.
            epoch: seconds that one of one training takes, about.
        """
        self._choice.set_price(lanes, math.inf)
        try:
            spent = {count: self._timed(lane, count, shared, count * epoch) for count in (1, lanes)}
        except jax.errors.JaxRuntimeError:  # no memory for so many, say
            log.warning("%s trainings cannot be stacked", lanes, exc_info=True)
            return
        self._choice.set_price(lanes, spent[lanes] / spent[1])

    def _timed(self, lane: Lane, lanes: int, shared: Shared, seconds: float) -> float:
        """Return the least that an epoch took, in rounds of about as many as fit."""
        now, epochs, found = clock(), _epochs_a_round(seconds), math.inf
        for turn in range(ROUNDS + 1):  # the first compiles
            copies = [_copy(lane) for _ in range(lanes)]
            began = now()
            for _ in range(epochs):
                copies = [lane._replace(state=state) for state, _, _ in self.train(copies, shared)]
            if turn:
                found = min(found, (now() - began) / epochs)
        return found

    def _side_by_side(
        self, stack: State, dials: Any, x: Any, y: Any, rows: Any, weights: Any, held: Any, clear: Leaves
    ) -> tuple[State, dict[str, Any], Any]:
        """Train lanes: state (lanes, …), dials (lanes, dials), rows and weights (lanes, batches, batch)."""

        def lane(state: State, dials: Any, rows: Any, weights: Any) -> Any:
            return self._whole((*state[:3], clear), dials, x, y, rows, weights, 0, len(rows), held)

        trained: tuple[State, dict[str, Any], Any] = jax.vmap(lane)(stack, dials, rows, weights)
        return trained


def _epochs_a_round(seconds: float) -> int:
    return max(1, int(TRIAL_SECONDS / seconds))


def _stack(states: Sequence[State | Slice]) -> State:
    """Return the states as one, (lanes, …): as they come out of the epoch before, or put together."""
    first = states[0]
    if isinstance(first, Slice) and all(
        isinstance(state, Slice) and state.stack is first.stack and state.lane == lane
        for lane, state in enumerate(states)
    ):
        return first.stack
    stack: State = jax.tree.map(lambda *leaves: np.stack([*map(np.asarray, leaves)]), *map(_cut, states))
    return stack


def _cut(state: State | Slice) -> State:
    return state.cut() if isinstance(state, Slice) else state


def _copy(lane: Lane) -> Lane:
    return lane._replace(state=jax.tree.map(jax.numpy.array, _cut(lane.state)))
