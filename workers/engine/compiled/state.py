"""Types for the training state that Keras' `train_step` takes and returns."""

from typing import Any

import jax

Leaves = list[Any]
"""Arrays in the order of one group of the model's variables."""
State = tuple[Leaves, Leaves, Leaves, Leaves]
"""Values of the trainable, non-trainable, optimizer and metrics variables."""


def copied(arrays: Any) -> Any:
    """Copy each array in a tree, on the device.

    `jax.numpy.array` compiles a program for each shape, which takes longer than a small model's epoch.
    """
    return jax.device_put(arrays, may_alias=False)
