"""What is faster for a model: guessed, timed once, remembered beside its programs."""

import contextlib
import math
import os
import time
from collections.abc import Callable
from typing import Any, Literal, get_args

import jax

from workers.engine.compiled import aot, cache

Way = Literal["many", "one"]
WAYS: tuple[Way, ...] = get_args(Way)
"""Many steps a call, or one: equal but for rounding."""
CLEARLY = 0.9
"""Another way than many steps a call must take less than this part of the time: where both are alike, others
may have the core that its Python between the steps needs."""
ROUNDS = 5
TRIAL_SECONDS = 0.1
"""How long a round of timing takes, in the way that was trained so far."""
LAID_OUT_BYTES = 8 << 20
"""Up to this size rows in order were never slower, on dense networks of 32 to 256 units."""
QUICK_FLOPS = 5e6
"""What a CPU computes in about the time that Python takes between two steps."""


def guess(model: Any, rows: int) -> Way:
    """Return the way to begin with where nobody has timed the model yet.

    Many steps a call spare Python between the steps. But on CPU convolutions take up to three times as long
    inside a compiled loop as outside, which is worse where they compute for longer than Python takes.

    Args:
        model: built.
        rows: of a batch.
    """
    work = rows * sum(_operations(layer) for layer in model._flatten_layers(include_self=False))
    return "one" if jax.default_backend() == "cpu" and work > QUICK_FLOPS else "many"


def _operations(layer: Any) -> int:
    """Return about how many floating point operations of a training step a convolution does for a row.

    Its kernels multiply and add at each place of the output, and twice more for the gradients.
    """
    if not hasattr(layer, "kernel_size"):
        return 0
    try:
        shape = layer.output.shape
    except (AttributeError, ValueError):  # called within a class of somebody's own, or in several places
        shape = ()
    kernels = sum(math.prod(weight.shape) for weight in layer.weights if len(weight.shape) > 1)
    return 6 * kernels * math.prod(size or 1 for size in shape[1:-1])


def clock() -> Callable[[], float]:
    """Return what to time with: with one thread its own time, since others may take the core meanwhile."""
    alone = jax.default_backend() == "cpu" and not has_threads()
    return time.process_time if alone else time.perf_counter


def has_threads() -> bool:
    """Say whether XLA computes on several threads of the CPU."""
    return jax.default_backend() == "cpu" and os.environ.get("NPROC") != "1"


def is_laid_out(epoch_bytes: int) -> bool:
    """Say whether an epoch's rows are put in order before its loop, rather than batch by batch within it.

    Within the loop XLA picks a batch's rows on all threads, and waking them takes longer than a small step:
    without, a dense network of 64 features takes half the CPU time. Much memory is not worth writing twice.
    """
    return has_threads() and epoch_bytes <= LAID_OUT_BYTES


class Choice:
    """What was found by timing one model's programs, None until somebody has.

    It is kept beside the compiled programs, for later processes on machines like this one.

    Args:
        key: of the programs.
    """

    def __init__(self, key: str) -> None:
        self._key = key
        self._prices: dict[int, float] = {}
        kept = self._recall("way")
        self.way = next((way for way in WAYS if kept == way), None)

    def make(self, way: Way) -> None:
        """Settle on a way."""
        self.way = way
        self._keep("way", way)

    def price(self, lanes: int) -> float | None:
        """Return what a stacked epoch of so many trainings costs, in epochs of one."""
        if lanes not in self._prices and (kept := self._recall(f"price-{lanes}")) is not None:
            with contextlib.suppress(ValueError):  # damaged: timed anew
                self._prices[lanes] = float(kept)
        return self._prices.get(lanes)

    def set_price(self, lanes: int, price: float) -> None:
        """Settle on a price."""
        self._prices[lanes] = price
        self._keep(f"price-{lanes}", repr(price))

    def _keep(self, question: str, answer: str) -> None:
        if (programs := cache.in_use()) is not None:
            programs.put(self._file(question), answer.encode())

    def _recall(self, question: str) -> str | None:
        programs = cache.in_use()
        kept = programs.get(self._file(question)) if programs is not None else None
        return None if kept is None else kept.decode(errors="replace")

    def _file(self, question: str) -> str:
        return f"{question}-{aot.digest({'key': self._key, 'made of': aot.made_of()})}"
