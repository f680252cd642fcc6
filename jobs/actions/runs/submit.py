"""Queues jobs: roots with their payloads, roots for experiments, and their steps."""

from contextlib import suppress
from typing import Any

from django.db import transaction

from jobs import clock, hints
from jobs.actions.audit import audit
from jobs.actions.code import own_code
from jobs.actions.people import quotas
from jobs.actions.runs import events
from jobs.actions.runs.kind_actions import actions_of
from jobs.actions.storage import deletions
from jobs.errors import BadSpec, Conflict, StaleState
from jobs.kinds import KINDS, facts_of_payload, planned_steps
from jobs.kinds.base import Payload
from jobs.models import (
    DatasetVersion,
    Job,
    Project,
    Revision,
    User,
)
from jobs.queries.experiments import base_versions
from jobs.queries.registry.registry import is_name_of_another
from jobs.queries.search import outcomes
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.plan import planning
from jobs.spec.problems import Problem
from jobs.spec.sections.code_model import CodeModel
from jobs.states import JobState


def submit(revision: Revision, *, by: User, registers: bool = True) -> Job:
    """Queue an experiment's revision: a search if its spec has one, else a single training.

    Args:
        revision: the revision.
        by: the acting user.
        registers: whether the versions that the spec names are registered.

    Raises:
        Forbidden: `by` may not run jobs in the project.
        BadSpec: the dataset version does not exist or is not ready.
        QuotaReached: the project has too many unfinished jobs.
    """
    experiment = revision.experiment
    own_code.require_right(by, experiment.project, revision)
    spec = revision.spec
    own_code.require_present(experiment.project, spec)
    version = dataset_version(spec, revision)
    _check_model_name(spec, experiment.project)
    with transaction.atomic():
        quotas.require_room_for_job(experiment.project)
        # The version is stored in the payload: the spec may leave it open, and newer ones may follow.
        facts = KINDS[planned_steps(spec)[0]]
        job = queue(
            facts.payload(
                dataset_version=None if version is None else version.pk,
                passes_batch_size=isinstance(spec.model, CodeModel),
                device_bytes=_device_bytes(spec, version),
                registers=registers,
            ),
            project=experiment.project,
            experiment=experiment,
            revision=revision,
            title=experiment.name,
            pool=spec.resources.pool,
            labels=spec.resources.labels or {},
            priority=spec.resources.priority,
            slots=spec.resources.slots,
            max_restarts=spec.resources.max_restarts,
            max_minutes=None if facts.has_trials else spec.resources.max_minutes,
            created_by=by,
        )
        audit.record(
            "job.submit", f"job:{job.pk}", by=by, project=experiment.project, revision=revision.digest
        )
    return job


def _device_bytes(spec: ExperimentSpec, version: DatasetVersion | None) -> int | None:
    """Return the estimated memory on each device, for the choice of a GPU that others use too."""
    # No job is refused because its memory cannot be estimated.
    with suppress(ValueError):
        return None if version is None else planning.device_bytes(spec, version.profile)
    return None


def _check_model_name(spec: ExperimentSpec, project: Project) -> None:
    """Refuse a model name that another project has, before hours of training."""
    registration = spec.after.register_
    if registration is None:
        return
    if is_name_of_another(registration.model, project):
        message = f"the model name {registration.model!r} is taken by another project"
        raise BadSpec(message, [Problem("/spec/after/register/model", message)])


def dataset_version(spec: ExperimentSpec, revision: Revision) -> DatasetVersion | None:
    """Return the dataset version in a spec, the newest ready one if it names none, or None without data."""
    data = spec.data
    if data is None:
        return None
    dataset = outcomes.find_dataset(revision.experiment.project, data.dataset)
    if dataset is None:
        raise BadSpec(
            f"this project has no dataset {data.dataset!r}",
            [Problem("/spec/data/dataset", f"no dataset {data.dataset!r} in this project")],
        )
    versions = dataset.versions.filter(state=DatasetVersion.State.READY)
    if data.dataset_version is not None:
        versions = versions.filter(number=data.dataset_version)
    version = versions.order_by("-number").first()
    if version is None:
        numbered = f" {data.dataset_version}" if data.dataset_version else ""
        message = f"dataset {dataset.slug} has no ready version{numbered}"
        raise BadSpec(message, [Problem("/spec/data/dataset_version", message)])
    return version


def queue(payload: Payload, **fields: Any) -> Job:
    """Create a queued root with the payload's kind and notify the scheduler, in the caller's transaction."""
    job = Job.objects.create(
        kind=facts_of_payload(payload).name,
        payload_json=payload.to_json(),
        state=JobState.QUEUED,
        queued=clock.now(),
        **fields,
    )
    _require_kept(job)
    events.append(job.pk, [events.event("state", job, state=str(JobState.QUEUED))])
    hints.send("schedule", job=job.pk)
    return job


def _require_kept(job: Job) -> None:
    """Lock the project and a new job's experiment, and check that nothing that it needs was deleted.

    Raises:
        StaleState: something is deleted.
    """
    source = base_versions.pinned_version(job.revision.spec) if job.revision is not None else None
    model_and_version = () if source is None else (source.model, source)
    deletions.require_present(job.project, job.experiment, *model_and_version)
    pk = job.payload.dataset_version
    if pk is not None and not DatasetVersion.objects.filter(pk=pk, dataset__deletion=None).exists():
        raise StaleState(f"the data of job {job.pk} were deleted meanwhile")


def placement_like(job: Job | None) -> dict[str, Any]:
    """Return the pool and labels for a job about the model of another one, if that one asked for labels.

    Labels may restrict where the data may be read. Without any, such a job runs in the default pool, whose
    workers are always there.
    """
    return {"pool": job.pool, "labels": job.labels} if job is not None and job.labels else {}


def devices_like(job: Job | None) -> dict[str, Any]:
    """Return the pool and slots for a job that loads the model of another one, if one GPU may not hold it."""
    mesh = None if job is None or job.revision is None else job.revision.spec.mesh
    if job is None or mesh is None or not mesh.needs_gpus_to_load():
        return {}
    return {"pool": job.pool, "slots": mesh.size()}


def create_step(
    root: Job,
    payload: Payload,
    ordinal: int,
    *,
    title: str,
    slots: int = 1,
    max_minutes: float | None = None,
) -> Job:
    """Create a step's job under a root, or return the existing one."""
    # A unique constraint on these three columns makes concurrent calls create one row.
    row, _ = Job.objects.get_or_create(
        parent=root,
        kind=facts_of_payload(payload).name,
        ordinal=ordinal,
        defaults={
            "root": root,
            "project": root.project,
            "experiment": root.experiment,
            "revision": root.revision,
            "title": title,
            "payload_json": payload.changed(
                dataset_version=root.payload.dataset_version, device_bytes=root.payload.device_bytes
            ).to_json(),
            "pool": root.pool,
            "labels": root.labels,
            "priority": root.priority,
            "slots": slots,
            "max_restarts": root.max_restarts,
            "max_minutes": max_minutes,
            "queued": clock.now(),
            "created_by": root.created_by,
        },
    )
    return row


def clone(job: Job, *, by: User, registers: bool = True) -> Job:
    """Queue a copy of a root, as its kind defines.

    Args:
        job: the root.
        by: the acting user.
        registers: whether the copy registers the versions that its spec names.

    Raises:
        Forbidden: `by` may not run jobs in the project.
        Conflict: jobs of this kind cannot run again.
    """
    return actions_of(job).clone(job, by=by, registers=registers)


def resubmit(job: Job, *, by: User, registers: bool = True) -> Job:
    """Queue a root's revision again.

    Raises:
        Forbidden: `by` may not run jobs in the project.
        Conflict: the job has no experiment, or is a step of another job.
    """
    if job.revision is None or job.parent_id is not None:
        raise Conflict(f"job {job.pk} ({job.facts.noun}) has no experiment of its own and cannot run again")
    return submit(job.revision, by=by, registers=registers)
