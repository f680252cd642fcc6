"""Defines how a training's variables are divided over a mesh, as the engine read it from the live arrays."""

from typing import Annotated

from pydantic import Field

from jobs.messages.reports.base import ModelReport

MOST_VARIABLES = 2_000
"""Variables in a report; a model with more is described in part, and `left_out` counts the rest."""
Axes = tuple[str | None, ...]


class LiveVariable(ModelReport):
    """One weight: where the design puts it, and where it is.

    Attributes:
        path: of the Keras variable.
        shape: of the whole variable.
        dtype: of its elements.
        rule: the index of the layout rule that applies; null: none, so every device holds it whole.
        designed: the mesh axis of each dimension by the rules.
        live: the same, as read from the array.
        shard_shape: of the part that one device holds.
        shard_bytes: of that part.
        devices: how many devices hold a part.
    """

    path: str
    shape: tuple[int, ...]
    dtype: str
    rule: int | None = None
    designed: Axes
    live: Axes
    shard_shape: tuple[int, ...]
    shard_bytes: int
    devices: int

    @property
    def is_as_designed(self) -> bool:
        """Whether the array is divided by the rules."""
        return self.designed == self.live


class Shardings(ModelReport):
    """The weights of a model that trains on a mesh.

    Attributes:
        shape, axis_names, batch_axis: of the mesh.
        devices: their names, in the order of `bytes_per_device`.
        batch_size: rows in a batch.
        variables: the weights.
        left_out: how many weights are not among them.
        bytes_per_device: what weights and optimizer variables take on each device.
        unmatched: the patterns of layout rules that match no weight of this model.
    """

    shape: tuple[int, ...]
    axis_names: tuple[str, ...]
    batch_axis: str | None = None
    devices: tuple[str, ...]
    batch_size: int
    variables: Annotated[tuple[LiveVariable, ...], Field(max_length=MOST_VARIABLES)]
    left_out: int = 0
    bytes_per_device: tuple[int, ...]
    unmatched: tuple[str, ...] = ()
