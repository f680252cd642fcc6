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


SHARED_BYTES = 64 << 10
"""Size from which a mesh's arrays are shared by a model and the state of its training."""


def shared(arrays: Any) -> Any:
    """Copy the small arrays in a tree; return large ones as they are.

    A step that is given them frees them. Until the model gets those of the next state, its variables with
    large arrays cannot be read: JAX raises an error.
    """
    return jax.tree.map(lambda array: array if array.nbytes >= SHARED_BYTES else copied(array), arrays)
