"""Computes the memory that a design needs on each device."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from jobs.spec.plan.mesh.placement import Placement
from jobs.spec.sections.mesh import MeshSpec


class MemoryParts(NamedTuple):
    """Bytes on each device by purpose; None where it is unknown before the model is compiled.

    Attributes:
        weights: the variables of the model; exact.
        gradients: one for each number that is trained; exact.
        slots: the optimizer's variables; exact for default arguments.
        activations: results of layers that the backward pass needs; an estimate.
    """

    weights: int
    gradients: int
    slots: int
    activations: int | None

    @property
    def total(self) -> int:
        """Return the sum of the known parts."""
        return self.weights + self.gradients + self.slots + (self.activations or 0)


def memory_on_device(
    placements: Sequence[Placement],
    mesh: MeshSpec | None,
    *,
    slots: int,
    batch: int,
    activations_per_row: float | None,
) -> MemoryParts:
    """Return the memory on each device during training.

    Gradients and optimizer variables are divided like their weights. Activations are divided by the batch
    alone: those of divided layers may be smaller, so they are an upper bound.

    Args:
        placements: the variables on the mesh.
        mesh: the mesh; None: one device.
        slots: the optimizer's variables for each trained number.
        batch: the rows in a batch of all devices together.
        activations_per_row: the bytes for one row; None: unknown.
    """
    weights = sum(placement.bytes for placement in placements)
    trained = sum(placement.bytes for placement in placements if placement.weight.trainable)
    rows = math.ceil(batch / (mesh.batch_shards() if mesh is not None else 1))
    activations = None if activations_per_row is None else round(activations_per_row * rows)
    return MemoryParts(weights, trained, trained * slots, activations)
