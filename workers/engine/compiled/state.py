"""The state of one training, as Keras' `train_step` takes it."""

from typing import Any

Leaves = list[Any]
"""Arrays in the order of the model's variables of one group."""
State = tuple[Leaves, Leaves, Leaves, Leaves]
"""The values of trainable, non-trainable, optimizer and metrics variables."""
