"""Describes a compiled training step: what each device holds and computes, and what devices exchange."""

from collections.abc import Callable
from typing import NamedTuple

from pydantic import Field

from jobs.spec.base import Frozen

TEMPORARIES_FACTOR = 1.25
"""The memory of a process grew by up to this much more than the compiler's temporaries, as was measured."""


class Collective(Frozen):
    """One kind of exchange between devices in a training step."""

    kind: str = Field(description="as XLA names it, for example all-reduce")
    count: int = Field(description="in one step")
    bytes: int = Field(description="of all results on one device, in one step")


class CompiledStep(Frozen):
    """A training step that was compiled for simulated CPU devices. All figures are for one device."""

    compiled_for: str = Field(default="cpu", description="the platform whose compiler made the figures")
    devices: int
    batch_size: int = Field(description="rows of the whole batch")
    weights: int = Field(description="bytes; exact")
    gradients: int = Field(description="bytes; exact, and part of the temporaries")
    optimizer: int = Field(description="bytes; exact")
    batch: int = Field(description="bytes of the batch and of metrics")
    temporaries: int = Field(description="bytes, as the compiler plans them")
    temporaries_factor: float = Field(
        default=TEMPORARIES_FACTOR, description="the temporaries are multiplied by it in an estimate"
    )
    flops: float | None = Field(description="operations of one step; null if they are not counted")
    collectives: tuple[Collective, ...] = ()
    has_loops: bool = Field(
        default=False,
        description="whether the step has loops, such as those of recurrent layers: their operations count "
        "once, and so do collectives in a loop of unknown length",
    )
    seconds: float = Field(description="how long the compilation took")

    @property
    def expected_temporaries(self) -> int:
        """Return the temporaries as they are expected in a process, in bytes."""
        return round(self.temporaries * self.temporaries_factor)

    @property
    def activations(self) -> int:
        """Return the expected temporaries without the gradients, in bytes."""
        return max(self.expected_temporaries - self.gradients, 0)

    @property
    def total(self) -> int:
        """Return the bytes that one device needs."""
        return self.weights + self.optimizer + self.batch + max(self.expected_temporaries, self.gradients)


class LargestBatch(Frozen):
    """The largest batch with which a training step fits into a device's memory."""

    rows: int = Field(description="of the whole batch; 0 if not even the smallest batch fits")
    device_bytes: int = Field(description="the memory of one device")
    limited_by: str = Field(description="memory, or rows: all rows of the data fit into one batch")
    confirmed: bool = Field(description="whether a step was compiled with this batch, and fits")


class Point(NamedTuple):
    """A step's memory in bytes, by the rows of its batch."""

    rows: int
    bytes: int


def largest_batch(
    first: Point, second: Point, device_bytes: int, shards: int, most: int, measure: Callable[[int], int]
) -> LargestBatch:
    """Find the largest batch that fits: by a straight line, and one compilation that confirms it.

    The temporaries are nearly proportional to the batch.

    Args:
        first: of a compiled step.
        second: likewise, with another batch.
        device_bytes: the memory of one device.
        shards: by this number a batch has to be divisible.
        most: no batch has more rows.
        measure: compiles a step with so many rows; returns its bytes.
    """
    most = max(most // shards, 1) * shards
    rows = min(_rows_on_line(first, second, device_bytes, shards), most)
    if rows <= 0:
        found = shards if measure(shards) <= device_bytes else 0
        return LargestBatch(rows=found, device_bytes=device_bytes, limited_by="memory", confirmed=True)
    limit = "rows" if rows == most else "memory"
    known = {first.rows: first.bytes, second.rows: second.bytes}
    needed = known[rows] if rows in known else measure(rows)
    if needed <= device_bytes:
        return LargestBatch(rows=rows, device_bytes=device_bytes, limited_by=limit, confirmed=True)
    # Between a batch that fits and one that does not, the line is close.
    corrected = _rows_on_line(min(first, second), Point(rows, needed), device_bytes, shards)
    return LargestBatch(
        rows=max(min(corrected, rows - shards), 0),
        device_bytes=device_bytes,
        limited_by="memory",
        confirmed=False,
    )


def _rows_on_line(first: Point, second: Point, device_bytes: int, shards: int) -> int:
    """Return the most rows, divisible by `shards`, that a line through two points allows; 2**31 for all."""
    slope = (second.bytes - first.bytes) / (second.rows - first.rows) if second.rows != first.rows else 0.0
    if slope <= 0:
        return 2**31 if max(first.bytes, second.bytes) <= device_bytes else 0
    rows = first.rows + (device_bytes - first.bytes) / slope
    return max(int(rows // shards) * shards, 0)
