"""Chooses the fastest way to run a model's steps: by an estimate first, then by timing, stored for later.

Timing results are stored beside the compiled programs, so each model is timed once on machines of a kind.
"""

import contextlib
import math
import os
import time
from collections.abc import Callable, Iterator
from typing import Any, Literal, get_args

import jax

from workers.engine.compiled import aot, cache

StepMode = Literal["many", "one"]
STEP_MODES: tuple[StepMode, ...] = get_args(StepMode)
"""Many steps in one call of a compiled loop, or one step in each call. Results differ only by rounding."""
MAX_TIME_RATIO = 0.9
"""A mode replaces the default only if it takes less than this share of the time.

Where both take equally long, the default is better: the Python between single steps would take CPU time from
other processes.
"""
CALL_SECONDS_PER_ARRAY = 20e-6
"""More than the call of a compiled step takes for each array of its state. 5 µs were measured with 18 to 122
arrays, 9 µs with 287."""
MAX_GATHERED_BYTES = 8 << 20
"""Epochs up to this size were never slower with gathered rows, on dense networks of 32 to 256 units."""
SMALL_STEP_FLOPS = 5e6
"""Operations that a CPU computes in about the time that Python needs between two steps."""


def estimate_step_mode(model: Any, rows: int) -> StepMode:
    """Return the mode to use until the model has been timed.

    Args:
        model: a built model.
        rows: rows in a batch.
    """
    # Many steps per call avoid the Python between steps. On CPU, however, convolutions take up to three times
    # as long inside a compiled loop (jax-ml/jax #12868), which costs more once they compute for longer than
    # that Python takes.
    flops = rows * sum(_convolution_flops(layer) for layer in model._flatten_layers(include_self=False))
    return "one" if jax.default_backend() == "cpu" and flops > SMALL_STEP_FLOPS else "many"


def is_long_step(seconds: float, arrays: int) -> bool:
    """Return whether steps are so long that many of them per call cannot be clearly faster.

    Args:
        seconds: duration of a step with one step per call.
        arrays: number of arrays in the state.
    """
    # All that many steps per call can save is the overhead of the calls.
    return arrays * CALL_SECONDS_PER_ARRAY < (1 - MAX_TIME_RATIO) * seconds


def _convolution_flops(layer: Any) -> int:
    """Estimate the floating point operations of a convolution in a training step, per row; 0 for others."""
    if not hasattr(layer, "kernel_size"):
        return 0
    try:
        shape = layer.output.shape
    # A layer inside a custom layer has no output of its own.
    except (AttributeError, ValueError):
        shape = ()
    kernels = sum(math.prod(weight.shape) for weight in layer.weights if len(weight.shape) > 1)
    # A kernel multiplies and adds at each position of the output, and twice more for the gradients: factor 6.
    return 6 * kernels * math.prod(size or 1 for size in shape[1:-1])


def timing_clock() -> Callable[[], float]:
    """Return the clock for timing, in seconds."""
    # On a single thread it is CPU time, which other processes cannot distort. With several threads, CPU time
    # would count parallel work several times.
    single_thread = jax.default_backend() == "cpu" and not is_multithreaded()
    return time.process_time if single_thread else time.perf_counter


def is_multithreaded() -> bool:
    """Return whether XLA uses several CPU threads."""
    return jax.default_backend() == "cpu" and os.environ.get("NPROC") != "1"


def gathers_before_loop(epoch_bytes: int) -> bool:
    """Return whether an epoch's rows are gathered before its loop rather than batch by batch inside it.

    Args:
        epoch_bytes: size of the features and targets of one epoch.
    """
    # Inside the loop XLA gathers each batch on all threads, and waking them takes longer than a small step:
    # gathering first halves the CPU time of a dense network with 64 features. For larger data the copy costs
    # more than it saves.
    return is_multithreaded() and epoch_bytes <= MAX_GATHERED_BYTES


STEP_MODE = "step-mode"
"""Name of the result of timing both step modes."""
UNKNOWN = "unknown"
"""Stored in place of a result that is not known yet."""


def cost_name(count: int) -> str:
    """Return the name of the relative cost of `count` trainings."""
    return f"cost-{count}"


class TimingResults:
    """Timing results of one model's programs, stored beside them.

    Args:
        key: `program_key` of the programs.

    Attributes:
        step_mode: the faster mode; None until it has been timed.
    """

    def __init__(self, key: str) -> None:
        self._key = key
        self._costs: dict[int, float] = {}
        stored = self._read(STEP_MODE)
        self.step_mode = next((mode for mode in STEP_MODES if stored == mode), None)

    def set_step_mode(self, mode: StepMode) -> None:
        """Store the faster mode."""
        self.step_mode = mode
        self._write(STEP_MODE, mode)

    def relative_cost(self, count: int) -> float | None:
        """Return the time of a vmapped epoch of `count` trainings, in single epochs; None if unknown."""
        if count not in self._costs and (stored := self._read(cost_name(count))) is not None:
            # The file may be damaged, or its measurement unfinished: then the cost is timed again.
            with contextlib.suppress(ValueError):
                self._costs[count] = float(stored)
        return self._costs.get(count)

    def set_relative_cost(self, count: int, cost: float) -> None:
        """Store the relative cost of `count` trainings. See `relative_cost`."""
        self._costs[count] = cost
        self._write(cost_name(count), repr(cost))

    @contextlib.contextmanager
    def assumed(self, name: str, value: str) -> Iterator[None]:
        """Return a context of a risky measurement, in which other processes read `value` as its result.

        If this process dies in it, no later one tries the same again. After any other end the result is
        unknown until it is set.

        Args:
            name: `STEP_MODE`, or `cost_name` of a number of trainings.
            value: the result to assume.
        """
        self._write(name, value)
        yield
        self._write(name, UNKNOWN)

    def _write(self, name: str, value: str) -> None:
        if (programs := cache.active()) is not None:
            programs.put(self._file(name), value.encode())

    def _read(self, name: str) -> str | None:
        programs = cache.active()
        stored = programs.get(self._file(name)) if programs is not None else None
        return None if stored is None else stored.decode(errors="replace")

    def _file(self, name: str) -> str:
        # Another processor, library or setting may make another mode the faster one.
        return f"{name}-{aot.json_digest({'key': self._key, 'fingerprint': aot.fingerprint()})}"
