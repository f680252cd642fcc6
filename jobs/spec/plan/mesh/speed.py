"""Estimates a training step's time on a mesh from its work, the bytes exchanged, and a fixed part.

The model leaves out what only a compiler and a device know: no exchange overlaps with work, every device
computes at one rate, and attention's comparisons of words, normalizations and activations take no time. Its
figures rank designs; measured ones replace them.
"""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from jobs.spec.plan.mesh.layout_plans import resize
from jobs.spec.plan.mesh.placement import Placement, Weight, place_all
from jobs.spec.sections.mesh import MeshSpec
from jobs.spec.templates.layers import FLOAT32

COUNTS = (1, 2, 4, 8)
USUAL = {1: 1.0, 2: 2.0, 4: 3.8, 8: 7.3}
"""The usual speed-up of data parallel training of large image models, whose batch grows with the devices."""
WORTH = 1.2
"""Twice as many devices pay if they are at least this much faster."""
FLOPS_PER_WEIGHT = 6
"""Operations for each weight, position and row: 2 forward and 4 backward.

Kaplan et al., Scaling Laws for Neural Language Models (2020), section 2.1.
"""


class Hardware(NamedTuple):
    """The assumed speeds of a device and of its connection.

    Attributes:
        flops: operations per second of a device in training.
        link: bytes per second between two devices.
        latency: seconds before an exchange begins.
        fixed: seconds of each step that no device shares: reading rows and starting programs.
    """

    flops: float
    link: float
    latency: float = 30e-6
    fixed: float = 1e-3


HARDWARE = {"gpu": Hardware(10e12, 12e9), "tpu": Hardware(50e12, 100e9), "cpu": Hardware(50e9, 5e9)}
"""Cautious values: a GPU of the middle class behind PCIe 4.0, a TPU v4, a CPU with a few cores."""


class StepTime(NamedTuple):
    """The seconds of one step, by part, and the bytes that each device sends in it."""

    compute: float
    exchange: float
    fixed: float
    bytes: float

    @property
    def total(self) -> float:
        """Return the sum."""
        return self.compute + self.exchange + self.fixed


class Exchange(NamedTuple):
    """Numbers that one device sends in a step for one purpose, in bytes, and in how many messages."""

    bytes: float
    times: int


class SpeedUp(NamedTuple):
    """A number of devices beside one device.

    Attributes:
        devices: the number.
        step: the time of a step with the same batch; None if the mesh cannot have this number.
        same_batch: how many times as many rows a second, with the same batch.
        growing_batch: likewise, with a batch that grows with the parts into which it is divided.
        pays: whether it is worth more than the next smaller number of devices, with the same batch; None for
            the smallest.
        pays_growing: likewise, with the growing batch.
    """

    devices: int
    step: StepTime | None
    same_batch: float | None
    growing_batch: float | None
    pays: bool | None = None
    pays_growing: bool | None = None


def step_time(weights: Sequence[Weight], mesh: MeshSpec | None, batch: int, hardware: Hardware) -> StepTime:
    """Return the time of one training step.

    Args:
        weights: the model's variables.
        mesh: the mesh with its layout; None: one device.
        batch: the rows of a batch of all devices together.
        hardware: the assumed speeds.
    """
    placements = place_all(weights, mesh)
    rows = math.ceil(batch / (mesh.batch_shards() if mesh is not None else 1))
    work = sum(_work(placement, mesh) for placement in placements) * rows
    exchanges = (
        [] if mesh is None else [*_of_gradients(placements, mesh), *_of_results(placements, mesh, rows)]
    )
    sent = sum(exchange.bytes for exchange in exchanges)
    waits = sum(exchange.times for exchange in exchanges) * hardware.latency
    return StepTime(work / hardware.flops, sent / hardware.link + waits, hardware.fixed, sent)


def speed_ups(weights: Sequence[Weight], mesh: MeshSpec, batch: int, hardware: Hardware) -> list[SpeedUp]:
    """Return the expected speed-up of each usual number of devices, and of that of the mesh."""
    alone = step_time(weights, None, batch, hardware)
    rows = [SpeedUp(1, alone, 1.0, 1.0)]
    for devices in sorted({*COUNTS, mesh.size()} - {1}):
        other = resize(mesh, devices)
        if other is None:
            rows.append(SpeedUp(devices, None, None, None))
            continue
        step, parts = step_time(weights, other, batch, hardware), other.batch_shards()
        grown = step_time(weights, other, batch * parts, hardware)
        same, growing = alone.total / step.total, alone.total / grown.total * parts
        before = next(row for row in reversed(rows) if row.step is not None)
        worth = WORTH ** math.log2(devices / before.devices)
        rows.append(
            SpeedUp(
                devices,
                step,
                same,
                growing,
                pays=same >= worth * (before.same_batch or 1.0),
                pays_growing=growing >= worth * (before.growing_batch or 1.0),
            )
        )
    return rows


def _work(placement: Placement, mesh: MeshSpec | None) -> float:
    """Return a device's operations for a variable and one row."""
    weight = placement.weight
    if len(weight.shape) < 2 or weight.kind == "embeddings":
        return 0.0
    # Along the batch axis a device gathers the whole weights, so only other axes divide the work.
    return FLOPS_PER_WEIGHT * weight.size * weight.positions / _shares(placement, mesh)


def _shares(placement: Placement, mesh: MeshSpec | None) -> int:
    """Return in how many parts the axes beside that of the batch divide a variable."""
    if mesh is None:
        return 1
    return math.prod(mesh.axis(axis) for axis in placement.axes if axis not in (None, mesh.batch_axis))


def _of_gradients(placements: Sequence[Placement], mesh: MeshSpec) -> Iterator[Exchange]:
    """Yield the sums of gradients over the batch axis.

    A ring sends 2 (n - 1) / n of the bytes for an all-reduce. A variable that this axis divides is gathered
    twice, and its gradient is added by a reduce-scatter: 3 (n - 1) / n.
    """
    size = mesh.batch_shards()
    if size == 1:
        return
    ring = (size - 1) / size
    whole = 0.0
    for placement in placements:
        if not placement.weight.trainable:
            continue
        part = placement.weight.size * placement.weight.itemsize / _shares(placement, mesh)
        if mesh.batch_axis in placement.axes:
            yield Exchange(3 * ring * part, 3)
        else:
            whole += 2 * ring * part
    if whole:
        # XLA combines all of them in one exchange.
        yield Exchange(whole, 1)


def _of_results(placements: Sequence[Placement], mesh: MeshSpec, rows: int) -> Iterator[Exchange]:
    """Yield the exchanges of results of layers that an axis beside that of the batch divides.

    A layer divided by columns (its outputs) adds the gradients of its inputs, and gathers its outputs unless
    the next layer is divided by rows (its inputs) along the same axis. A layer divided by rows adds its
    outputs.
    """
    columns: list[Placement] = []
    for placement in placements:
        weight = placement.weight
        if len(weight.shape) < 2:
            continue
        axis = _axis_beside(placement, mesh)
        inputs, outputs, first_output = _sides(weight)
        if axis is not None and placement.axes.index(axis) >= first_output:
            if columns and _owner(columns[0].weight) != _owner(weight):
                yield from _gathered(columns, mesh, rows)
                columns = []
            yield _added(inputs, weight, mesh.axis(axis), rows)
            columns.append(placement)
            continue
        if any(_axis_beside(column, mesh) != axis for column in columns):
            yield from _gathered(columns, mesh, rows)
        columns = []
        if axis is not None:
            yield _added(outputs, weight, mesh.axis(axis), rows)
    yield from _gathered(columns, mesh, rows)


def _axis_beside(placement: Placement, mesh: MeshSpec) -> str | None:
    """Return the first axis that divides a variable and not the batch."""
    return next((axis for axis in placement.axes if axis not in (None, mesh.batch_axis)), None)


def _owner(weight: Weight) -> str:
    """Return the layer that a kernel belongs to: query, key and value of one attention have the same."""
    return weight.layer.rpartition("/")[0] if len(weight.shape) == 3 else weight.layer


def _sides(weight: Weight) -> tuple[int, int, int]:
    """Return the inputs and outputs of a kernel for one position, and its first dimension of outputs."""
    shape = weight.shape
    if len(shape) > 3:  # a convolution: the sides of its window, then the channels
        return shape[-2], shape[-1], len(shape) - 1
    # Only an attention's output projection has several dimensions of inputs.
    first_output = len(shape) - 1 if weight.layer.endswith("attention_output") else 1
    return math.prod(shape[:first_output]), math.prod(shape[first_output:]), first_output


def _added(numbers: int, weight: Weight, size: int, rows: int) -> Exchange:
    return Exchange(2 * (size - 1) / size * numbers * rows * weight.positions * FLOAT32, 1)


def _gathered(columns: Sequence[Placement], mesh: MeshSpec, rows: int) -> Iterator[Exchange]:
    for placement in columns:
        axis = _axis_beside(placement, mesh)
        size = mesh.axis(axis) if axis is not None else 1
        _, outputs, _ = _sides(placement.weight)
        numbers = outputs * rows * placement.weight.positions
        yield Exchange((size - 1) / size * numbers * FLOAT32, 1)
