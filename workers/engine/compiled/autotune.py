"""Estimates how a model's steps run fastest, and decides when timing may and may not change that."""

import math
import os
import time
from collections.abc import Callable
from typing import Any

import jax

from workers.engine.compiled.timing_results import StepMode
from workers.engine.models.keras_private import layers_inside

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
    flops = rows * sum(_convolution_flops(layer) for layer in layers_inside(model, include_self=False))
    return "one" if jax.default_backend() == "cpu" and flops > SMALL_STEP_FLOPS else "many"


def is_long_step(seconds: float, arrays: int) -> bool:
    """Return whether steps are so long that many per call cannot be clearly faster.

    Args:
        seconds: how long a step takes with one step per call.
        arrays: how many arrays the state has.
    """
    # All that many steps per call can save is the overhead of the calls.
    return arrays * CALL_SECONDS_PER_ARRAY < (1 - MAX_TIME_RATIO) * seconds


def _convolution_flops(layer: Any) -> int:
    """Estimate a convolution's floating point operations in a training step, per row; 0 for others."""
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
        epoch_bytes: the size that one epoch's features and targets have.
    """
    # Inside the loop XLA gathers each batch on all threads, and waking them takes longer than a small step:
    # gathering first halves the CPU time of a dense network with 64 features. For larger data the copy costs
    # more than it saves.
    return is_multithreaded() and epoch_bytes <= MAX_GATHERED_BYTES
