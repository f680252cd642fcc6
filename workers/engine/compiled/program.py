"""The compiled programs of one model: many training steps a call, one step a call, prediction, figures.

All of them are Keras' own `train_step` and `stateless_call`, traced once. Everything that changes from step
to step or from trial to trial is an argument: the state, the rows, which of them make a batch, the dials.
"""

import time
from collections.abc import Callable
from typing import Any

import jax
import keras
import numpy as np

from workers.engine.compiled.aot import Ahead
from workers.engine.compiled.autotune import (
    CLEARLY,
    ROUNDS,
    TRIAL_SECONDS,
    WAYS,
    Choice,
    Way,
    clock,
    guess,
    is_laid_out,
)
from workers.engine.compiled.state import Leaves, State
from workers.engine.compiled.traced_hyperparameters import dials_of, turned
from workers.engine.compiled.vmapped import Stacked
from workers.engine.data.table import Array
from workers.engine.models.optimizer import ensure_built

WORTH = 3.0
"""The other way is compiled and timed once training in the first has taken this many compilations,"""
WORTH_ALL = 30.0
"""and always after this many, however little is left of the training that is at it."""
COMPILING = 1.0
"""Seconds that compiling the other way takes at least, where the first one came out of the cache."""
MOST_SECONDS = 2.0
"""How long an epoch of all stacked trainings may take one by one: nobody is heard during a call."""
CALL_SECONDS = 0.25
"""How long one call into a program may take: requests are heard and progress is said between calls."""


class Pace:
    """How many steps of a program go into one call: found by doubling, once for all who share the program."""

    def __init__(self) -> None:
        self.steps = 1
        self.settled = False

    def note(self, steps: int, seconds: float) -> None:
        """Learn from a call that took `seconds` for `steps` steps."""
        if seconds < CALL_SECONDS / 2:
            self.steps = max(self.steps, 2 * steps)
            return
        self.settled = True
        if seconds > 2 * CALL_SECONDS and self.steps > 1:
            self.steps //= 2


class Program:
    """Made for a model that is compiled; the model must not change afterwards but in values of variables.

    Args:
        model: built and compiled, on one device.
        batch: one batch as it will be trained on: x, y, weights.
        key: what other models must share to share these programs.
    """

    def __init__(self, model: Any, batch: tuple[Array, Array, Array], key: str) -> None:
        self.model = model
        self._prepare_metrics(batch)
        self._dials = dials_of(model)
        self._key = key
        self._many = self._ahead(self._many_steps, donated=0)
        self._whole = self._ahead(self._steps_and_figures, donated=0)
        self._one = self._ahead(self._one_step, donated=0)
        self.predict = self._ahead(self._predict)
        self._logs = self._ahead(self._results)
        self.pace = Pace()
        self._choice = Choice(key)
        self.stacked = Stacked(self._steps_and_figures, self._whole, self._ahead, self._choice)
        self._guess = guess(model, len(batch[0]))
        self._compiling: float | None = None
        self.trained = 0.0
        """Seconds spent on training, the first call left out, in which most of the compiling is done."""
        self.steps = 0
        """Steps done in them."""

    def _ahead(self, function: Callable[..., Any], donated: int | None = None) -> Ahead:
        return Ahead(function, f"{function.__name__} of {self._key}", donated)

    @property
    def way(self) -> Way:
        """Say which way is the faster one, as far as it is known, else what to begin with."""
        return self._choice.way or self._guess

    def _prepare_metrics(self, batch: tuple[Array, Array, Array]) -> None:
        """Let the model make the variables of its metrics, as `fit` does before its first step."""
        ensure_built(self.model)
        self.model._symbolic_build(data_batch=batch)
        self.model.reset_metrics()
        self._clear = [np.array(variable.value) for variable in self.model.metrics_variables]

    def dials(self) -> Array:
        """Return what the dials stand at, (dials,) float32."""
        return np.array([dial.read() for dial in self._dials], dtype=np.float32)

    def state(self) -> State:
        """Copy the model's variables; the programs consume the state that they are given."""
        model = self.model
        groups = model.trainable_variables, model.non_trainable_variables, model.optimizer.variables
        trainable, other, optimizer = (
            [jax.numpy.array(variable.value) for variable in group] for group in groups
        )
        return trainable, other, optimizer, self.clear_metrics()

    def clear_metrics(self) -> Leaves:
        """Return the metrics' variables as they stand before the first batch of an epoch."""
        return list(self._clear)

    def put_back(self, state: State) -> None:
        """Write a copy of a state into the model's variables."""
        model = self.model
        groups = (
            model.trainable_variables,
            model.non_trainable_variables,
            model.optimizer.variables,
            model.metrics_variables,
        )
        for variables, leaves in zip(groups, state, strict=True):
            for variable, leaf in zip(variables, leaves, strict=True):
                variable.assign(np.asarray(leaf))

    def weights(self, state: State) -> list[Array]:
        """Copy a state to the host, in the order of `model.variables`."""
        model, (trainable, other, _, _) = self.model, state
        placed = {
            id(v): leaf
            for v, leaf in zip(
                [*model.trainable_variables, *model.non_trainable_variables],
                [*trainable, *other],
                strict=True,
            )
        }
        return [np.array(placed[id(variable)]) for variable in model.variables]

    def logs(self, state: State) -> dict[str, float]:
        """Return loss and metrics over the batches since the metrics were clear."""
        return {name: float(value) for name, value in self._logs(state[3]).items()}

    def train(self, way: str, state: State, dials: Array, data: Any, steps: range) -> State:
        """Train on some batches and wait for the end.

        Args:
            way: one of `WAYS`.
            state: consumed.
            dials: what `dials` returned.
            data: x, y, rows (batches, batch) and weights (batches, batch).
            steps: which of these batches.
        """
        began = time.perf_counter()
        if way == "many":
            state = self._many(state, dials, *data, steps.start, steps.stop)
        else:
            x, y, rows, weights = data
            for step in steps:
                state = self._one(state, dials, x, y, rows[step], weights[step])
        jax.block_until_ready(state[3])
        self._count(len(steps), time.perf_counter() - began)
        return state

    def train_and_measure(
        self, state: State, dials: Array, data: Any, steps: range, held: Any
    ) -> tuple[State, dict[str, float], Array]:
        """Train as `train` does with many steps a call, then do what `logs` and `predict` do, in one call.

        On small models calling costs more than computing.
        """
        began = time.perf_counter()
        state, logs, outputs = self._whole(state, dials, *data, steps.start, steps.stop, held)
        predictions = np.asarray(outputs)
        self._count(len(steps), time.perf_counter() - began)
        return state, {name: float(value) for name, value in logs.items()}, predictions

    def _count(self, steps: int, seconds: float) -> None:
        if self._compiling is None:
            self._compiling = seconds
        else:
            self.trained += seconds
            self.steps += steps

    def worth_measuring(self, left: int) -> bool:
        """Say whether it pays to know the faster way, whatever knowing costs.

        It does once the programs have trained for several times as long and this training is to go on for as
        long again; and once all trainings together have taken so long that it hardly matters.

        Args:
            left: steps that the training has before it.
        """
        return self._choice.way is None and self._worth_timing(left)

    def worth_stacking(self, lanes: int, steps: int, left: int) -> bool:
        """Say whether it pays to know what `lanes` trainings cost in one call.

        It needs to be known that many steps a call are the faster way for one, and how long an epoch takes.

        Args:
            lanes: how many.
            steps: of an epoch.
            left: steps that all of them have before them.
        """
        if self._choice.way != "many" or self.stacked.is_known(lanes) or not self.steps:
            return False
        epoch = steps * self.seconds_a_step
        rounds = (ROUNDS + 1) * self.stacked.seconds_a_round(lanes, epoch)
        return lanes * epoch <= MOST_SECONDS and self._worth_timing(left, WORTH * rounds)

    def _worth_timing(self, left: int, seconds: float = 0.0) -> bool:
        """Say whether something is worth timing that takes so many seconds beside compiling it."""
        if not self.steps:
            return False
        cost = max(self._compiling or 0.0, COMPILING) + seconds
        ahead = left * self.seconds_a_step
        return (self.trained > WORTH * cost and ahead > cost) or self.trained > WORTH_ALL * cost

    @property
    def seconds_a_step(self) -> float:
        """What a step took in the mean."""
        return self.trained / self.steps

    def measure(self, state: State, dials: Array, data: Any, steps: range) -> None:
        """Time both ways on this very model, on copies of the state, and keep one if it is clearly faster."""
        steps = steps[: max(1, int(TRIAL_SECONDS / self.seconds_a_step))]
        now = clock()
        seconds: dict[Way, list[float]] = {"many": [], "one": []}
        for turn in range(ROUNDS + 1):  # the first compiles
            for way in WAYS:
                copy = jax.tree.map(jax.numpy.array, state)
                began = now()
                self.train(way, copy, dials, data, steps)
                if turn:
                    seconds[way].append(now() - began)
        self._choice.make("one" if min(seconds["one"]) < CLEARLY * min(seconds["many"]) else "many")

    def _batch(self, x: Any, y: Any, rows: Any, weights: Any) -> tuple[Any, Any, Any]:
        """Return what is trained on next: `rows` says where it lies in x and y, its weights are (batch,)."""
        return x[rows].astype("float32"), y[rows], weights

    def _step(self, state: State, batch: tuple[Any, Any, Any], dials: Any) -> State:
        with turned(self._dials, dials):
            _, state = self.model.train_step(state, batch)
        return state

    def _one_step(self, state: State, dials: Any, x: Any, y: Any, rows: Any, weights: Any) -> State:
        """Train on one batch: the rows `rows`, (batch,), of x and y with weights (batch,)."""
        return self._step(state, self._batch(x, y, rows, weights), dials)

    def _many_steps(
        self, state: State, dials: Any, x: Any, y: Any, rows: Any, weights: Any, first: Any, end: Any
    ) -> State:
        """Train on the batches `first` to `end` - 1 of rows and weights, both (batches, batch)."""
        laid_out = is_laid_out(rows.size * (_row_bytes(x) + _row_bytes(y)))
        if laid_out:
            x, y = x[rows], y[rows]

        def body(step: Any, state: State) -> State:
            batch = self._batch(x, y, step if laid_out else rows[step], weights[step])
            return self._step(state, batch, dials)

        trained: State = jax.lax.fori_loop(first, end, body, state)
        return trained

    def _steps_and_figures(
        self,
        state: State,
        dials: Any,
        x: Any,
        y: Any,
        rows: Any,
        weights: Any,
        first: Any,
        end: Any,
        held: Any,
    ) -> tuple[State, dict[str, Any], Any]:
        state = self._many_steps(state, dials, x, y, rows, weights, first, end)
        return state, self._results(state[3]), self._predict(state[0], state[1], held)

    def _predict(self, trainable: Leaves, other: Leaves, x: Any) -> Any:
        outputs, _ = self.model.stateless_call(trainable, other, x.astype("float32"), training=False)
        return outputs

    def _results(self, metrics: Leaves) -> dict[str, Any]:
        pairs = zip(self.model.metrics_variables, metrics, strict=True)
        with keras.StatelessScope(state_mapping=list(pairs)):
            results: dict[str, Any] = self.model.get_metrics_result()
        return results


def _row_bytes(rows: Any) -> int:
    return int(np.prod(rows.shape[1:])) * rows.dtype.itemsize
