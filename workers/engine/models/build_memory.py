"""Refuses to build a model that is too large for this process, before its memory is allocated."""

import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import jax
import numpy as np

from workers.engine.errors import CodeBuildFailure, is_out_of_memory
from workers.engine.models.keras_private import initialized_by
from workers.system.usable_memory import total_memory

COPIES = 4
"""A training has the weights, their gradients and two averages of an optimizer."""
GIB = 1 << 30


@contextmanager
def small_enough() -> Iterator[None]:
    """Refuse a model that is built inside and whose training needs more than this process' memory.

    The system may end a process that allocates too much, so this is not left to an error.

    Raises:
        CodeBuildFailure: the model is too large, or the memory did not suffice.
    """
    memory, needed = process_memory(), 0

    def initialize(variable: Any, initializer: Any, draw: Callable[[Any, Any], None]) -> None:
        nonlocal needed
        needed += COPIES * int(np.prod(variable.shape)) * jax.numpy.dtype(variable.dtype).itemsize
        if needed > memory:
            raise MemoryError
        draw(variable, initializer)

    try:
        with initialized_by(initialize):
            yield
    # Keras raises its own errors around those in layers.
    except Exception as error:
        if needed <= memory and not is_out_of_memory(error):
            raise
        size = f"{needed / GIB:.1f}" if needed > memory else f"more than {needed / GIB:.1f}"
        raise CodeBuildFailure(
            f"a training of this model needs at least {size} GiB, and this process has {memory / GIB:.1f} "
            "GiB; such trials may fail: declare smaller values, or raise resources.memory_gib"
        ) from error


def process_memory() -> int:
    """Return the bytes that this process may allocate."""
    machine = total_memory()
    soft, _ = resource.getrlimit(resource.RLIMIT_DATA)
    return machine if soft == resource.RLIM_INFINITY else min(soft, machine)
