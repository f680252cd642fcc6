"""Reads the input of the mesh designer: a spec's model, the devices of its pool, and measured speeds."""

from collections import defaultdict
from collections.abc import Sequence
from statistics import median
from typing import Any, NamedTuple

from django.db.models import QuerySet, Sum
from pydantic import ValidationError

from jobs.models import Experiment, Project, Revision, Trial, User, Worker
from jobs.queries.data import datasets
from jobs.queries.experiments import plan as plans
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.plan.mesh.model_facts import ModelFacts, model_facts
from jobs.spec.problems import Problem
from jobs.spec.sections.mesh import MeshSpec
from jobs.states import TrialState

NEWEST = 500
"""How many of an experiment's newest trials are read."""


class Subject(NamedTuple):
    """The model for which a mesh is designed.

    Attributes:
        spec: its experiment without a mesh; None if the spec cannot be parsed.
        facts: its variables and activations; None likewise.
        problems: the problems of the spec, also if it can be parsed.
        training_rows: the rows on which it trains; None: unknown.
    """

    spec: ExperimentSpec | None
    facts: ModelFacts | None
    problems: list[Problem]
    training_rows: int | None


def read_subject(project: Project, body: Any, *, by: User, experiment: Experiment | None = None) -> Subject:
    """Return the model that a spec describes.

    Args:
        project: the project of the spec.
        body: the spec as JSON; a draft may be invalid.
        by: the acting user, if the spec starts from another project's version.
        experiment: the experiment of the spec, if any.
    """
    # A design replaces the mesh, whose problems are those of the design.
    without_mesh = {name: body[name] for name in body if name != "mesh"} if isinstance(body, dict) else body
    validation = plans.validate_spec(project, without_mesh, by=by, experiment=experiment)
    spec = validation.spec
    if spec is None or validation.plan is None:
        return Subject(spec, None, validation.problems, None)
    version = (
        datasets.find_version(project, spec.data.dataset, spec.data.dataset_version)
        if spec.data is not None
        else None
    )
    profile = version.profile if version is not None else None
    rows = None
    if profile is not None and spec.data is not None:
        split = spec.data.split
        rows = round(profile.rows * (1 - split.validation - split.test))
    return Subject(spec, model_facts(spec, profile, validation.plan), validation.problems, rows)


class PoolDevice(NamedTuple):
    """The smallest device of one kind in a pool, with its worker, and how many a worker has at most."""

    name: str
    model: str
    worker: str
    memory: int
    devices: int


def pool_device(pool: str, kind: str) -> PoolDevice | None:
    """Return the device with the least memory of a kind, among the live workers of a pool that report it."""
    found: list[PoolDevice] = []
    for worker in Worker.objects.live(pool):
        # The `kind` of a device is its model, such as NVIDIA L4.
        devices = [device for device in worker.devices if str(device["name"]).split(":")[0] == kind]
        found += [
            PoolDevice(
                str(device["name"]),
                str(device.get("kind", "")),
                worker.name,
                int(device["memory_bytes"]),
                len(devices),
            )
            for device in devices
            if device.get("memory_bytes")
        ]
    return min(found, key=lambda device: device.memory, default=None)


class MeasuredSpeed(NamedTuple):
    """Completed trainings on one number of devices.

    Attributes:
        devices: the number.
        seconds: the median of the seconds for an epoch, compilation included.
        trainings: how many trials the median is of.
        job: the newest of their jobs.
    """

    devices: int
    seconds: float
    trainings: int
    job: int


def measured_speeds(experiment: Experiment, spec: ExperimentSpec, mesh: MeshSpec) -> list[MeasuredSpeed]:
    """Return the measured speeds of an experiment's jobs with the same model and data, by number of devices.

    Devices of another kind are left out, and simulated ones unless the design simulates its own.
    """
    trials: QuerySet[Trial] = Trial.objects.filter(
        job__experiment=experiment, state=TrialState.COMPLETED, restarts=0
    ).select_related("job__revision")
    rows = trials.annotate(trained=Sum("executions__epochs")).order_by("-pk")[:NEWEST]
    seconds: dict[int, list[float]] = defaultdict(list)
    jobs: dict[int, int] = {}
    of_revision: dict[int, int | None] = {}
    for trial in rows:
        revision = trial.job.revision
        if revision is None or not trial.started or not trial.finished or not trial.trained:
            continue
        if revision.pk not in of_revision:
            of_revision[revision.pk] = _devices_of(revision, spec, mesh)
        devices = of_revision[revision.pk]
        if devices is not None:
            seconds[devices].append((trial.finished - trial.started).total_seconds() / trial.trained)
            jobs.setdefault(devices, trial.job_id)
    return [
        MeasuredSpeed(devices, median(values), len(values), jobs[devices])
        for devices, values in sorted(seconds.items())
    ]


def _devices_of(revision: Revision, spec: ExperimentSpec, mesh: MeshSpec) -> int | None:
    """Return how many devices a revision's jobs use; None if they cannot be compared with a design."""
    try:
        other = revision.spec
    except ValidationError:  # of an earlier release
        return None
    if (other.model, other.data) != (spec.model, spec.data):
        return None
    used = other.mesh
    if used is None:
        return 1
    is_same = used.kind == mesh.kind and (used.simulate is None) == (mesh.simulate is None)
    return used.size() if is_same else None


def speed_ups_of(measured: Sequence[MeasuredSpeed]) -> dict[int, float]:
    """Return how many times as fast as one device each number was; empty without a training on one."""
    alone = next((speed.seconds for speed in measured if speed.devices == 1), None)
    return (
        {} if alone is None else {speed.devices: alone / speed.seconds for speed in measured if speed.seconds}
    )
