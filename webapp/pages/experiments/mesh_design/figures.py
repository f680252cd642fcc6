"""Computes the drawings and tables of a design."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from jobs.models import Experiment
from jobs.queries.experiments.mesh_design import (
    MeasuredSpeed,
    Subject,
    measured_speeds,
    pool_device,
    speed_ups_of,
)
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.plan.mesh import advice
from jobs.spec.plan.mesh.advice import Scaling
from jobs.spec.plan.mesh.memory import MemoryParts, memory_on_device
from jobs.spec.plan.mesh.model_facts import ModelFacts
from jobs.spec.plan.mesh.placement import Placement, place_all
from jobs.spec.plan.mesh.speed import USUAL, SpeedUp, StepTime, speed_ups, step_time
from jobs.spec.sections.mesh import MeshSpec
from webapp.forms.experiments.mesh_design.view_entries import Settings, ViewEntries
from webapp.pages.experiments.mesh_design.variable_list import VariableList, list_variables
from webapp.report_figures.mesh.batch import BatchDrawing, draw_batch
from webapp.report_figures.mesh.devices import (
    DeviceGrid,
    SliceDrawing,
    SliceRow,
    draw_devices,
    draw_slices,
    slice_rows,
)
from webapp.report_figures.mesh.memory import MemoryDrawing, draw_memory


class RuleUse(NamedTuple):
    """A rule's effect.

    Attributes:
        takes: how many variables it takes.
        later: how many it matches that an earlier rule takes.
        wrong: how many of those it takes cannot be divided so.
    """

    takes: int
    later: int
    wrong: int


class SpeedRow(NamedTuple):
    """A number of devices: expected, usual and measured speed-up."""

    expected: SpeedUp
    usual: float | None
    measured: float | None
    seconds: float | None
    job: int | None
    is_design: bool


class Capacity(NamedTuple):
    """The memory of a device, and where the number is from."""

    bytes: int | None
    text: str


@dataclass(frozen=True)
class DesignFigures:
    """The drawings and tables of a valid design."""

    mesh: MeshSpec
    chosen: Placement | None
    grid: DeviceGrid | None
    slices: SliceDrawing | None
    slice_rows: list[SliceRow]
    batch: BatchDrawing
    memory: MemoryDrawing
    after: MemoryParts
    before: MemoryParts
    saved_share: int
    capacity: Capacity
    variables: VariableList
    uses: list[RuleUse]
    speeds: list[SpeedRow]
    step: StepTime
    has_measured: bool
    has_baseline: bool
    scaling: Scaling | None
    settings: Settings

    @property
    def compute_share(self) -> int:
        """Return the share of the step in which devices compute, in percent."""
        return round(100 * self.step.compute / self.step.total)

    @property
    def default_teraflops(self) -> str:
        """Return the assumed speed of a device."""
        return f"{self.settings.default.flops / 1e12:g}"

    @property
    def default_link(self) -> str:
        """Return the assumed speed between devices, in gigabytes per second."""
        return f"{self.settings.default.link / 1e9:g}"

    @property
    def exchange_share(self) -> int:
        """Return the share of the step in which devices exchange numbers, in percent."""
        return round(100 * self.step.exchange / self.step.total)


def draw_design(
    subject: Subject,
    facts: ModelFacts,
    spec: ExperimentSpec,
    mesh: MeshSpec,
    before: MeshSpec | None,
    *,
    view: ViewEntries,
    settings: Settings,
    experiment: Experiment | None,
) -> DesignFigures:
    """Return the drawings of a design.

    Args:
        subject: the model and its data.
        facts: its variables.
        spec: its experiment.
        mesh: the design.
        before: the mesh with which it is compared; None: one device.
        view: the variables that are shown.
        settings: the batch, the memory of a device, and the assumed speeds.
        experiment: whose jobs have measured speeds, if any.
    """
    placements = place_all(facts.weights, mesh)
    chosen = _chosen(placements, view.variable)
    after = _memory_parts(facts, placements, mesh, settings)
    earlier = _memory_parts(facts, place_all(facts.weights, before), before, settings)
    capacity = _capacity(spec, mesh, settings)
    measured = measured_speeds(experiment, spec, mesh) if experiment is not None else []
    return DesignFigures(
        mesh=mesh,
        chosen=chosen,
        grid=draw_devices(chosen, mesh) if chosen is not None else None,
        slices=draw_slices(chosen, mesh) if chosen is not None else None,
        slice_rows=slice_rows(chosen, mesh) if chosen is not None else [],
        batch=draw_batch(mesh, settings.batch),
        memory=draw_memory({"before": earlier, "design": after}, capacity.bytes),
        after=after,
        before=earlier,
        saved_share=round(100 * (1 - after.total / earlier.total)) if earlier.total else 0,
        capacity=capacity,
        variables=list_variables(placements, view),
        uses=_uses(placements, len(mesh.layout)),
        speeds=_speed_rows(facts, mesh, settings, measured),
        step=step_time(facts.weights, mesh, settings.batch, settings.hardware),
        has_measured=any(speed.devices > 1 for speed in measured),
        has_baseline=any(speed.devices == 1 for speed in measured),
        scaling=_scaling(spec, mesh, subject.training_rows),
        settings=settings,
    )


def _chosen(placements: Sequence[Placement], path: str) -> Placement | None:
    """Return the variable to draw: the named one, else the largest."""
    named = next((placement for placement in placements if placement.weight.path == path), None)
    return named or max(placements, key=lambda placement: placement.weight.size, default=None)


def _memory_parts(
    facts: ModelFacts, placements: Sequence[Placement], mesh: MeshSpec | None, settings: Settings
) -> MemoryParts:
    return memory_on_device(
        placements,
        mesh,
        slots=facts.slots,
        batch=settings.batch,
        activations_per_row=facts.activations_per_row,
    )


def _uses(placements: Sequence[Placement], rules: int) -> list[RuleUse]:
    takes = Counter(placement.rule for placement in placements)
    later = Counter(rule for placement in placements for rule in placement.rules[1:])
    wrong = Counter(placement.rule for placement in placements if placement.problem)
    return [RuleUse(takes[rule], later[rule], wrong[rule]) for rule in range(rules)]


def _capacity(spec: ExperimentSpec, mesh: MeshSpec, settings: Settings) -> Capacity:
    if settings.memory is not None:
        return Capacity(settings.memory, "as entered")
    device = pool_device(spec.resources.pool, mesh.kind)
    if device is None:
        kind = mesh.kind.upper()
        return Capacity(None, f"No worker of pool {spec.resources.pool} reports the memory of a {kind}.")
    if mesh.kind == "cpu":
        # All CPU devices of a machine have one memory.
        share = f"1/{mesh.size()} of the memory of worker {device.worker}, which all its CPU devices share"
        return Capacity(device.memory // mesh.size(), share)
    return Capacity(device.memory, f"{device.name}, {device.model}, of worker {device.worker}")


def _speed_rows(
    facts: ModelFacts, mesh: MeshSpec, settings: Settings, measured: Sequence[MeasuredSpeed]
) -> list[SpeedRow]:
    ups, of_devices = speed_ups_of(measured), {speed.devices: speed for speed in measured}
    rows = []
    for expected in speed_ups(facts.weights, mesh, settings.batch, settings.hardware):
        speed = of_devices.get(expected.devices)
        rows.append(
            SpeedRow(
                expected,
                USUAL.get(expected.devices),
                ups.get(expected.devices),
                speed.seconds if speed is not None else None,
                speed.job if speed is not None else None,
                expected.devices == mesh.size(),
            )
        )
    return rows


def _scaling(spec: ExperimentSpec, mesh: MeshSpec, rows: int | None) -> Scaling | None:
    """Return advice for a batch that grows with its parts; None if none is divided, or the code sets it."""
    parts = mesh.batch_shards()
    rate = spec.fit.learning_rate
    if parts == 1 or not isinstance(rate, float):
        return None
    return advice.scale_batch(spec.fit.batch_size, rate, parts, optimizer=spec.fit.optimizer, rows=rows)
