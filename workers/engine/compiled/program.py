"""Compiles one model's functions: training steps, one or many in each call, metrics and prediction.

They call Keras' own `train_step` and `stateless_call`, which are traced once. Everything that changes from
step to step or from trial to trial is an argument: the state, the rows, the batches and the traced
hyperparameters.
"""

import time
from collections.abc import Callable
from typing import Any

import jax
import keras
import numpy as np

from workers.engine.compiled.aot import AheadOfTimeFunction
from workers.engine.compiled.autotune import (
    MAX_TIME_RATIO,
    ROUND_SECONDS,
    STEP_MODES,
    TIMING_ROUNDS,
    StepMode,
    TimingResults,
    estimate_step_mode,
    gathers_before_loop,
    timing_clock,
)
from workers.engine.compiled.state import Leaves, State
from workers.engine.compiled.traced_hyperparameters import find_traced_hyperparameters, replaced
from workers.engine.compiled.vmapped import VmappedProgram
from workers.engine.data.table import Array
from workers.engine.models.optimizer import ensure_built

TIMING_PAYOFF = 3.0
"""Another mode is compiled and timed once training has taken this many times the cost of doing so, if the
rest of the training takes at least as long as that."""
TIMING_PAYOFF_ALWAYS = 30.0
"""Beyond this many times the cost it is timed however little of the training is left."""
MIN_COMPILE_SECONDS = 1.0
"""Lower bound for compiling another mode: the measured first call may have come out of the cache."""
MAX_VMAPPED_SECONDS = 2.0
"""Maximum duration of one epoch of all trainings of a call: no request is served during a call."""
TARGET_CALL_SECONDS = 0.25
"""Target duration of a call: requests are served and progress is reported between calls."""


class CallLength:
    """Number of steps in one call of a program, found by doubling and shared by all users of the program."""

    def __init__(self) -> None:
        self.steps = 1
        self.settled = False

    def record(self, steps: int, seconds: float) -> None:
        """Adjust the number of steps after a call of `steps` steps that took `seconds`."""
        if seconds < TARGET_CALL_SECONDS / 2:
            self.steps = max(self.steps, 2 * steps)
            return
        self.settled = True
        if seconds > 2 * TARGET_CALL_SECONDS and self.steps > 1:
            self.steps //= 2


class Program:
    """The compiled functions of one model.

    The model must not change afterwards, except for the values of its variables.

    Args:
        model: built and compiled, on one device.
        batch: a batch as used in training: x, y, weights.
        key: equal for models that can share these functions; see `program_key`.

    Attributes:
        model: the model.
        predict: compiled function of trainable variables, other variables and x.
        call_length: number of steps in each call.
        vmapped: trains several trainings in one call.
        trained_seconds: time spent on training, without the first call, which includes compilation.
        trained_steps: steps done in that time.
    """

    def __init__(self, model: Any, batch: tuple[Array, Array, Array], key: str) -> None:
        self.model = model
        self._build_metrics(batch)
        self._traced = find_traced_hyperparameters(model)
        self._key = key
        self._many_steps = self._compile(self._run_steps, donated=0)
        self._epoch = self._compile(self._epoch_with_predictions, donated=0)
        self._one_step = self._compile(self._run_step, donated=0)
        self.predict = self._compile(self._predict)
        self._logs = self._compile(self._metric_results)
        self.call_length = CallLength()
        self._timings = TimingResults(key)
        self.vmapped = VmappedProgram(self._epoch_with_predictions, self._epoch, self._compile, self._timings)
        self._estimated_mode = estimate_step_mode(model, len(batch[0]))
        self._first_call_seconds: float | None = None
        self.trained_seconds = 0.0
        self.trained_steps = 0

    def _compile(self, function: Callable[..., Any], donated: int | None = None) -> AheadOfTimeFunction:
        return AheadOfTimeFunction(function, f"{function.__name__} of {self._key}", donated)

    @property
    def step_mode(self) -> StepMode:
        """The faster mode if it has been timed, else the estimated one."""
        return self._timings.step_mode or self._estimated_mode

    def _build_metrics(self, batch: tuple[Array, Array, Array]) -> None:
        """Create the variables of the model's metrics, as `fit` does before its first step."""
        ensure_built(self.model)
        self.model._symbolic_build(data_batch=batch)
        self.model.reset_metrics()
        self._initial_metrics = [np.array(variable.value) for variable in self.model.metrics_variables]

    def hyperparameters(self) -> Array:
        """Return the current values of the traced hyperparameters, (hyperparameters,) float32."""
        return np.array([each.read() for each in self._traced], dtype=np.float32)

    def state(self) -> State:
        """Return a copy of the model's variables; training functions donate the state they are given."""
        model = self.model
        groups = model.trainable_variables, model.non_trainable_variables, model.optimizer.variables
        trainable, other, optimizer = (
            [jax.numpy.array(variable.value) for variable in group] for group in groups
        )
        return trainable, other, optimizer, self.initial_metrics()

    def initial_metrics(self) -> Leaves:
        """Return the metrics' variables before the first batch of an epoch."""
        return list(self._initial_metrics)

    def write_to_model(self, state: State) -> None:
        """Copy a state into the model's variables."""
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
        """Copy the model's weights out of a state to the host, in the order of `model.variables`."""
        model, (trainable, other, _, _) = self.model, state
        leaf_of = {
            id(v): leaf
            for v, leaf in zip(
                [*model.trainable_variables, *model.non_trainable_variables],
                [*trainable, *other],
                strict=True,
            )
        }
        return [np.array(leaf_of[id(variable)]) for variable in model.variables]

    def logs(self, state: State) -> dict[str, float]:
        """Return loss and metrics over all batches since the metrics were reset."""
        return {name: float(value) for name, value in self._logs(state[3]).items()}

    def train(self, mode: str, state: State, hyperparameters: Array, data: Any, steps: range) -> State:
        """Train on some batches and wait until the device has finished.

        Args:
            mode: one of `STEP_MODES`.
            state: donated.
            hyperparameters: see `hyperparameters`.
            data: x, y, row numbers (batches, batch size) and weights (batches, batch size).
            steps: numbers of the batches to train on.
        """
        began = time.perf_counter()
        if mode == "many":
            state = self._many_steps(state, hyperparameters, *data, steps.start, steps.stop)
        else:
            x, y, rows, weights = data
            for step in steps:
                state = self._one_step(state, hyperparameters, x, y, rows[step], weights[step])
        # JAX returns before the device has finished, and the duration of the computation is measured
        jax.block_until_ready(state[3])
        self._record(len(steps), time.perf_counter() - began)
        return state

    def train_and_predict(
        self, state: State, hyperparameters: Array, data: Any, steps: range, validation_x: Any
    ) -> tuple[State, dict[str, float], Array]:
        """Do `train` with many steps per call, `logs` and `predict` in one call.

        For small models the overhead of a call exceeds the computation.

        Args:
            state, hyperparameters, data, steps: see `train`.
            validation_x: rows to predict after the steps, on the device.

        Returns:
            The state, loss and metrics by name, and the predictions.
        """
        began = time.perf_counter()
        state, logs, outputs = self._epoch(
            state, hyperparameters, *data, steps.start, steps.stop, validation_x
        )
        predictions = np.asarray(outputs)
        self._record(len(steps), time.perf_counter() - began)
        return state, {name: float(value) for name, value in logs.items()}, predictions

    def _record(self, steps: int, seconds: float) -> None:
        if self._first_call_seconds is None:
            self._first_call_seconds = seconds
        else:
            self.trained_seconds += seconds
            self.trained_steps += steps

    def should_time_modes(self, steps_left: int) -> bool:
        """Return whether both step modes should be timed now.

        They should once the program has trained for several times the cost of timing and the current training
        will still take as long as that, or once all trainings have taken so long that the cost is negligible.

        Args:
            steps_left: steps until the current training ends.
        """
        return self._timings.step_mode is None and self._timing_pays(steps_left)

    def should_time_vmap(self, count: int, steps: int, steps_left: int) -> bool:
        """Return whether a call for `count` trainings should be timed now.

        That many steps per call are faster, and how long an epoch takes, must be known before.

        Args:
            count: number of trainings.
            steps: steps in an epoch.
            steps_left: steps until all of them end.
        """
        if self._timings.step_mode != "many" or self.vmapped.is_timed(count) or not self.trained_steps:
            return False
        epoch = steps * self.seconds_per_step
        timing = (TIMING_ROUNDS + 1) * self.vmapped.seconds_per_round(count, epoch)
        return count * epoch <= MAX_VMAPPED_SECONDS and self._timing_pays(steps_left, TIMING_PAYOFF * timing)

    def _timing_pays(self, steps_left: int, timing_seconds: float = 0.0) -> bool:
        """Return whether timing pays if it takes `timing_seconds` in addition to compilation."""
        if not self.trained_steps:
            return False
        cost = max(self._first_call_seconds or 0.0, MIN_COMPILE_SECONDS) + timing_seconds
        seconds_left = steps_left * self.seconds_per_step
        return (
            self.trained_seconds > TIMING_PAYOFF * cost and seconds_left > cost
        ) or self.trained_seconds > TIMING_PAYOFF_ALWAYS * cost

    @property
    def seconds_per_step(self) -> float:
        """Mean duration of a step so far."""
        return self.trained_seconds / self.trained_steps

    def time_modes(self, state: State, hyperparameters: Array, data: Any, steps: range) -> None:
        """Time both step modes on copies of the state and store the one to use. For the args see `train`."""
        steps = steps[: max(1, int(ROUND_SECONDS / self.seconds_per_step))]
        now = timing_clock()
        seconds: dict[StepMode, list[float]] = {"many": [], "one": []}
        for turn in range(TIMING_ROUNDS + 1):
            for mode in STEP_MODES:
                copy = jax.tree.map(jax.numpy.array, state)
                began = now()
                self.train(mode, copy, hyperparameters, data, steps)
                if turn:  # the first round compiles
                    seconds[mode].append(now() - began)
        one_is_faster = min(seconds["one"]) < MAX_TIME_RATIO * min(seconds["many"])
        self._timings.set_step_mode("one" if one_is_faster else "many")

    def _batch(self, x: Any, y: Any, rows: Any, weights: Any) -> tuple[Any, Any, Any]:
        """Return one batch: `rows` of x and y with `weights`, (batch size,)."""
        return x[rows].astype("float32"), y[rows], weights

    def _train_step(self, state: State, batch: tuple[Any, Any, Any], hyperparameters: Any) -> State:
        with replaced(self._traced, hyperparameters):
            _, state = self.model.train_step(state, batch)
        return state

    def _run_step(self, state: State, hyperparameters: Any, x: Any, y: Any, rows: Any, weights: Any) -> State:
        """Train on one batch: the rows `rows` of x and y with `weights`, both (batch size,)."""
        return self._train_step(state, self._batch(x, y, rows, weights), hyperparameters)

    def _run_steps(
        self,
        state: State,
        hyperparameters: Any,
        x: Any,
        y: Any,
        rows: Any,
        weights: Any,
        first: Any,
        end: Any,
    ) -> State:
        """Train on the batches `first` to `end` - 1 of rows and weights, both (batches, batch size)."""
        # `first` and `end` are arguments: one program serves any number of steps, and a resume in an epoch
        gathered = gathers_before_loop(rows.size * (_row_bytes(x) + _row_bytes(y)))
        if gathered:
            x, y = x[rows], y[rows]

        def body(step: Any, state: State) -> State:
            batch = self._batch(x, y, step if gathered else rows[step], weights[step])
            return self._train_step(state, batch, hyperparameters)

        trained: State = jax.lax.fori_loop(first, end, body, state)
        return trained

    def _epoch_with_predictions(
        self,
        state: State,
        hyperparameters: Any,
        x: Any,
        y: Any,
        rows: Any,
        weights: Any,
        first: Any,
        end: Any,
        validation_x: Any,
    ) -> tuple[State, dict[str, Any], Any]:
        state = self._run_steps(state, hyperparameters, x, y, rows, weights, first, end)
        return state, self._metric_results(state[3]), self._predict(state[0], state[1], validation_x)

    def _predict(self, trainable: Leaves, other: Leaves, x: Any) -> Any:
        outputs, _ = self.model.stateless_call(trainable, other, x.astype("float32"), training=False)
        return outputs

    def _metric_results(self, metrics: Leaves) -> dict[str, Any]:
        pairs = zip(self.model.metrics_variables, metrics, strict=True)
        with keras.StatelessScope(state_mapping=list(pairs)):
            results: dict[str, Any] = self.model.get_metrics_result()
        return results


def _row_bytes(rows: Any) -> int:
    return int(np.prod(rows.shape[1:])) * rows.dtype.itemsize
