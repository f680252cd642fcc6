"""Compiles one model's functions, runs its training steps, one or many in each call, and times both modes."""

import logging
import time
from collections.abc import Callable, Sequence
from typing import Any

import jax
import keras
import numpy as np

from workers.engine.arrays import Array
from workers.engine.compiled.aot import AheadOfTimeFunction
from workers.engine.compiled.autotune import MAX_TIME_RATIO, estimate_step_mode, is_long_step, timing_clock
from workers.engine.compiled.model_functions import ModelFunctions
from workers.engine.compiled.placement import MeshPlacement, host_copy
from workers.engine.compiled.state import Leaves, State, copied, shared
from workers.engine.compiled.timing_comparison import TimingComparison, Variant
from workers.engine.compiled.timing_results import STEP_MODE, StepMode, TimingResults
from workers.engine.compiled.traced_hyperparameters import find_traced_hyperparameters
from workers.engine.compiled.training_time import CallLength, TrainingTime
from workers.engine.compiled.vmapped import VmappedProgram
from workers.engine.evaluation.metric_results import numbers_of
from workers.engine.models.keras_private import build_metrics
from workers.engine.models.optimizer import ensure_built

log = logging.getLogger(__name__)


class Program:
    """One model's compiled functions.

    The model must not change afterwards, except for its variables' values.

    Args:
        model: built and compiled.
        batch: a batch as used in training: x, y, weights.
        key: equal for models that can share these functions; see `program_key`.
        make_functions: defines the functions for the model and its traced hyperparameters.
        placement: where its arrays are on a mesh; None for one device.

    Attributes:
        model: the model.
        placement: see above.
        call_length: steps in each call, shared by all trainings that do not fix it.
        training_time: time that the program's trainings have taken.
        vmapped: trains several trainings in one call.
    """

    def __init__(
        self,
        model: Any,
        batch: tuple[Array, ...],
        key: str,
        make_functions: Callable[..., ModelFunctions] = ModelFunctions,
        placement: MeshPlacement | None = None,
    ) -> None:
        self.model = model
        self.placement = placement
        ensure_built(model)
        build_metrics(model, batch)
        model.reset_metrics()
        self._initial_metrics = [np.array(variable.value) for variable in model.metrics_variables]
        self._traced = find_traced_hyperparameters(model)
        self._key = key
        self._functions = functions = make_functions(model, self._traced)
        self._many_steps = self._compile(functions.steps, donated=0)
        self._epoch = self._compile(functions.epoch, donated=0)
        self._one_step = self._compile(functions.step, donated=0)
        self._numbered_step = self._compile(
            functions.numbered_step,
            donated=0,
            results=((*self._leaves()[:3], self.initial_metrics()), self._placed(np.int32(0))),
        )
        self._predict = self._compile(functions.predict)
        self._logs = self._compile(functions.metric_results)
        self.call_length = CallLength()
        self._timings = TimingResults(key)
        self.training_time = TrainingTime()
        self.vmapped = VmappedProgram(
            functions.epoch, self._epoch, self._compile, self._timings, self.training_time
        )
        self._estimated_mode = estimate_step_mode(model, len(batch[0]))
        self._comparison = TimingComparison(
            self.training_time, guard=lambda: self._timings.assumed(STEP_MODE, self._estimated_mode)
        )

    def _compile(
        self, function: Callable[..., Any], donated: int | None = None, results: Any = None
    ) -> AheadOfTimeFunction:
        """Return a compiled function; on a mesh its results are divided like the arrays in `results`."""
        # The name of the method is part of the key under which its program is stored.
        name, placement = f"{function.__name__} of {self._key}", self.placement
        if placement is None:
            return AheadOfTimeFunction(function, name, donated)
        shardings = None if results is None else placement.shardings(results)
        return AheadOfTimeFunction(
            function, name, donated, devices=placement.devices, out_shardings=shardings
        )

    def _placed(self, tree: Any) -> Any:
        """Return arrays of the host as the functions take them: on a mesh whole on each device."""
        return tree if self.placement is None else self.placement.whole(tree)

    def _leaves(self) -> State:
        """Return the variables' arrays."""
        model = self.model
        groups = (
            model.trainable_variables,
            model.non_trainable_variables,
            model.optimizer.variables,
            model.metrics_variables,
        )
        trainable, other, optimizer, metrics = ([variable.value for variable in group] for group in groups)
        return trainable, other, optimizer, metrics

    def predict(self, trainable: Leaves, other: Leaves, x: Array) -> Any:
        """Return the predictions for one batch, (rows, outputs), with these variables."""
        return self._predict(trainable, other, x if self.placement is None else self.placement.rows(x))

    @property
    def step_mode(self) -> StepMode:
        """The faster mode if it has been timed, else the estimated one; on a mesh one step in each call."""
        if self.placement is not None:
            return "one"
        return self._timings.step_mode or self._estimated_mode

    def hyperparameters(self) -> Array:
        """Return the traced hyperparameters' current values, (hyperparameters,), in the type of the run."""
        current = [hyperparameter.read() for hyperparameter in self._traced]
        values: Array = self._placed(np.array(current, dtype=keras.config.floatx()))
        return values

    def state(self) -> State:
        """Copy the model's variables."""
        # A copy: training functions donate the state they are given, which makes its buffers unusable.
        trainable, other, optimizer, _ = self._leaves()
        copy = copied if self.placement is None else shared
        return copy(trainable), copy(other), copy(optimizer), self.initial_metrics()

    def initial_metrics(self) -> Leaves:
        """Return the metrics' variables before an epoch's first batch."""
        return self.metrics_of(self._initial_metrics)

    def metrics_of(self, values: Leaves) -> Leaves:
        """Return these values of the metrics' variables as the functions take them."""
        placed: Leaves = self._placed(list(values))
        return placed

    def write_to_model(self, state: State) -> None:
        """Copy a state into the model's variables."""
        model = self.model
        groups = (
            model.trainable_variables,
            model.non_trainable_variables,
            model.optimizer.variables,
            model.metrics_variables,
        )
        # On a mesh a variable may be larger than a device, and than the host would like to hold twice.
        values = state if self.placement is None else shared(state)
        for variables, leaves in zip(groups, values, strict=True):
            for variable, leaf in zip(variables, leaves, strict=True):
                variable.assign(np.asarray(leaf) if self.placement is None else leaf)

    def weights(self, state: State) -> list[Array]:
        """Copy the model's weights out of a state to the host, ordered as in `model.variables`."""
        # That order mixes both groups. Keras variables are not hashable, so their ids are the keys.
        model, (trainable, other, _, _) = self.model, state
        leaf_of = {
            id(v): leaf
            for v, leaf in zip(
                [*model.trainable_variables, *model.non_trainable_variables],
                [*trainable, *other],
                strict=True,
            )
        }
        return [host_copy(leaf_of[id(variable)]) for variable in model.variables]

    def logs(self, state: State) -> dict[str, float]:
        """Return loss and metrics over all batches since the metrics were reset."""
        return numbers_of(self._logs(state[3]))

    def train(self, mode: str, state: State, hyperparameters: Array, data: Any, steps: range) -> State:
        """Train on some batches and wait until the device has finished.

        Args:
            mode: one of `STEP_MODES`.
            state: donated.
            hyperparameters: see `hyperparameters`.
            data: x, y, row numbers (batches, batch size) and weights (batches, batch size); on a mesh x, y
                and weights, each (batches, batch size, …).
            steps: the batches to train on, by their numbers.
        """
        began = time.perf_counter()
        state = self._run(mode, state, hyperparameters, data, steps)
        self.training_time.record(len(steps), time.perf_counter() - began)
        return state

    def _run(self, mode: str, state: State, hyperparameters: Array, data: Any, steps: range) -> State:
        """Do `train` without recording its duration."""
        if self.placement is not None:
            number = self._placed(np.int32(steps.start))
            for _ in steps:
                state, number = self._numbered_step(state, hyperparameters, *data, number)
        elif mode == "many":
            state = self._many_steps(state, hyperparameters, *data, steps.start, steps.stop)
        else:
            x, y, rows, weights = data
            of_batch = self._functions.batch_of
            for step in steps:
                batch = of_batch(rows, step), of_batch(weights, step)
                state = self._one_step(state, hyperparameters, x, y, *batch)
        # JAX returns before the device has finished, but the duration of the computation is measured.
        jax.block_until_ready(state[3])
        return state

    def train_and_validate(
        self, state: State, hyperparameters: Array, data: Any, steps: range, validation: Sequence[Any]
    ) -> tuple[State, dict[str, float], Any]:
        """Do `train` with many steps per call, `logs` and the validation in one call.

        For small models three calls' overhead exceeds the computation.

        Args:
            state, hyperparameters, data, steps: see `train`.
            validation: the validation rows on the device: arguments of `ModelFunctions.validate`.

        Returns:
            The state, loss and metrics by name, and the result of `ModelFunctions.validate`.
        """
        began = time.perf_counter()
        state, logs, outputs = self._epoch(
            state, hyperparameters, *data, steps.start, steps.stop, *validation
        )
        # Waits until the device has finished.
        outcome = jax.tree.map(np.asarray, outputs)
        self.training_time.record(len(steps), time.perf_counter() - began)
        return state, numbers_of(logs), outcome

    def time_modes(self, state: State, hyperparameters: Array, data: Any, steps_left: int) -> None:
        """Measure the step modes once more, unless the faster one is known or it does not pay yet.

        Args:
            state: copied, not donated.
            hyperparameters, data: see `train`.
            steps_left: steps until the current training ends.
        """
        spent, default = self.training_time, self._estimated_mode
        # On a mesh the other mode took twice the time of single steps with convolutions, which would be all
        # that its measurement shows there.
        if self.placement is not None:
            return
        if self._timings.step_mode is not None or not spent.steps:
            return
        # The other mode is neither compiled nor run: convolutions are up to ten times slower in it.
        if default == "one" and is_long_step(spent.fastest_step, len(jax.tree.leaves(state))):
            return
        candidate: StepMode = "one" if default == "many" else "many"
        x, y, rows, weights = data
        is_compiled: dict[StepMode, bool] = {
            "many": self._many_steps.is_compiled(state, hyperparameters, *data),
            "one": self._one_step.is_compiled(state, hyperparameters, x, y, rows[0], weights[0]),
        }

        def variant(mode: StepMode) -> Variant:
            return Variant(
                lambda steps: self._time(mode, state, hyperparameters, data, steps), is_compiled[mode]
            )

        try:
            ratio = self._comparison.measure_next(
                variant(default),
                variant(candidate),
                seconds=spent.seconds_per_step,
                max_units=len(rows),
                seconds_left=steps_left * spent.seconds_per_step,
            )
        # For example, two copies of the state do not fit into memory.
        except jax.errors.JaxRuntimeError:
            log.warning("the step modes cannot be timed", exc_info=True)
            self._timings.set_step_mode(default)
            return
        if ratio is not None:
            one_in_many = ratio if candidate == "one" else 1 / ratio
            self._timings.set_step_mode("one" if one_in_many < MAX_TIME_RATIO else "many")

    def _time(self, mode: StepMode, state: State, hyperparameters: Array, data: Any, steps: int) -> float:
        """Return how long the first `steps` steps in `data` take with a step mode, in seconds."""
        # `_run` donates its state, and the training continues from the original.
        copy = copied(state)
        now = timing_clock()
        began = now()
        self._run(mode, copy, hyperparameters, data, range(steps))
        return now() - began
