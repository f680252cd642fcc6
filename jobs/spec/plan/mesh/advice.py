"""Advises on batch size and learning rate when a training gets more devices."""

from collections.abc import Iterator
from typing import NamedTuple

LARGEST_PROVEN = 8192
"""The largest batch for which Goyal et al. found the same accuracy, with SGD on ImageNet."""
FEWEST_STEPS = 20
"""Steps in an epoch below which an optimizer has few chances to improve."""
SQUARE_ROOT = frozenset({"adam", "adamw", "nadam", "rmsprop", "adagrad", "lion"})
"""Optimizers that divide by the size of the gradients: the square root rule suits them better."""


class Scaling(NamedTuple):
    """A batch that grows with its parts, and the learning rate for it.

    Attributes:
        parts: the number of parts into which the mesh divides a batch.
        batch: the batch of all devices together.
        linear: the learning rate by the linear rule.
        root: the learning rate by the square root rule.
        suits_root: whether the square root rule suits the optimizer better.
        limits: sentences about where the rule ends.
    """

    parts: int
    batch: int
    linear: float
    root: float
    suits_root: bool
    limits: tuple[str, ...]


def scale_batch(batch: int, learning_rate: float, parts: int, *, optimizer: str, rows: int | None) -> Scaling:
    """Return the batch and the learning rate for several devices.

    Linear rule with warm-up: Goyal et al., Accurate, Large Minibatch SGD (2017), section 2. Square root rule
    for adaptive optimizers: Malladi et al., On the SDEs and Scaling Rules for Adaptive Gradient Algorithms
    (2022).

    Args:
        batch: the rows of a batch on one device.
        learning_rate: that suits this batch.
        parts: the number of parts into which the mesh divides a batch.
        optimizer: its name.
        rows: the training rows; None: unknown.
    """
    grown = batch * parts
    return Scaling(
        parts,
        grown,
        learning_rate * parts,
        learning_rate * parts**0.5,
        optimizer in SQUARE_ROOT,
        tuple(_limits(grown, rows)),
    )


def _limits(batch: int, rows: int | None) -> Iterator[str]:
    if batch > LARGEST_PROVEN:
        yield (
            f"A batch of {batch:,} rows is beyond the {LARGEST_PROVEN:,} up to which the rule was tested: "
            "expect a worse model, or keep the batch."
        )
    if rows is not None and rows / batch < FEWEST_STEPS:
        steps = max(rows // batch, 1)
        yield (
            f"An epoch would have {steps} step{'' if steps == 1 else 's'}: too few to learn much from. "
            "Keep the batch, or train more epochs."
        )
