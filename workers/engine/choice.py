"""Which way of running steps is faster for a model: guessed, timed once, remembered beside its programs."""

import math
from typing import Any, Literal, get_args

import jax

from workers.engine import ahead, compilecache

Way = Literal["many", "one"]
WAYS: tuple[Way, ...] = get_args(Way)
"""Many steps a call, or one: equal but for rounding."""
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


class Choice:
    """The way of one model's programs, None until somebody has timed both.

    Args:
        key: of the programs.
    """

    def __init__(self, key: str) -> None:
        self._key = key
        self.way = self._recall()

    def make(self, way: Way) -> None:
        """Settle on a way, for later processes on machines like this one too."""
        self.way = way
        if (cache := compilecache.in_use()) is not None:
            cache.put(self._file, way.encode())

    def _recall(self) -> Way | None:
        cache = compilecache.in_use()
        kept = cache.get(self._file) if cache is not None else None
        return next((way for way in WAYS if kept == way.encode()), None)

    @property
    def _file(self) -> str:
        return f"way-{ahead.digest({'key': self._key, 'made of': ahead.made_of()})}"
