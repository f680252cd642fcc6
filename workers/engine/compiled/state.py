"""Types of the training state that Keras' `train_step` takes and returns."""

from typing import Any

Leaves = list[Any]
"""Arrays in the order of one group of the model's variables."""
State = tuple[Leaves, Leaves, Leaves, Leaves]
"""Values of the trainable, non-trainable, optimizer and metrics variables."""
