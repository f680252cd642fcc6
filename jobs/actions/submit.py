"""Makes the queued jobs: an experiment's root, and the small ones that describe, register and judge."""

from collections.abc import Iterable
from typing import Any

from django.db import transaction

from jobs import access, clock, hints
from jobs.actions import audit, events
from jobs.contracts.chosen_trials import ChosenTrial, Pooled
from jobs.contracts.experiment import ExperimentSpec
from jobs.contracts.problems import Problem
from jobs.errors import BadSpec, Conflict
from jobs.models import (
    DatasetVersion,
    Job,
    ModelVersion,
    Project,
    PromotionRequest,
    RegisteredModel,
    Revision,
    Trial,
    User,
)
from jobs.queries import outcomes
from jobs.states import JobKind, JobState

NAMED = 8
"""So many trials of an ensemble stand in its title by their numbers."""


def submit(revision: Revision, *, by: User) -> Job:
    """Queue a revision of an experiment: a search if its spec has one, else a single training.

    Raises:
        Forbidden: `by` may not run jobs in the project.
        BadSpec: the dataset version does not exist or is not ready.
    """
    experiment = revision.experiment
    access.require(by, experiment.project, access.Action.WRITE)
    spec = revision.spec
    version = dataset_version(spec, revision)
    _check_model_name(spec, experiment.project)
    with transaction.atomic():
        job = _queued(
            kind=JobKind.SEARCH if spec.search is not None else JobKind.TRAIN,
            project=experiment.project,
            experiment=experiment,
            revision=revision,
            title=experiment.name,
            payload={"dataset_version": version.pk},
            pool=spec.resources.pool,
            priority=spec.resources.priority,
            slots=spec.resources.slots,
            max_restarts=spec.resources.max_restarts,
            created_by=by,
        )
        audit.record(
            "job.submit", f"job:{job.pk}", by=by, project=experiment.project, revision=revision.digest
        )
    return job


def _check_model_name(spec: ExperimentSpec, project: Project) -> None:
    """Refuse a model name of another project now, not after hours of training."""
    wanted = spec.after.register_
    if wanted is None:
        return
    if RegisteredModel.objects.filter(name=wanted.model).exclude(project=project).exists():
        message = f"the model name {wanted.model!r} is taken by another project"
        raise BadSpec(message, [Problem("/spec/after/register/model", message)])


def dataset_version(spec: ExperimentSpec, revision: Revision) -> DatasetVersion:
    """Return the dataset version that a revision names; its newest ready one when it names none."""
    dataset = outcomes.dataset_in(revision.experiment.project, spec.data.dataset)
    if dataset is None:
        raise BadSpec(
            f"there is no dataset {spec.data.dataset!r} in this project",
            [Problem("/spec/data/dataset", f"no dataset {spec.data.dataset!r} here")],
        )
    versions = dataset.versions.filter(state=DatasetVersion.State.READY)
    if spec.data.dataset_version is not None:
        versions = versions.filter(number=spec.data.dataset_version)
    version = versions.order_by("-number").first()
    if version is None:
        wanted = spec.data.dataset_version or "any"
        message = f"dataset {dataset.slug} has no ready version {wanted}"
        raise BadSpec(message, [Problem("/spec/data/dataset_version", message)])
    return version


def _queued(**fields: Any) -> Job:
    job = Job.objects.create(state=JobState.QUEUED, queued=clock.now(), **fields)
    events.append(job.pk, [events.event("state", job, state=str(JobState.QUEUED))])
    hints.send("schedule", job=job.pk)
    return job


def profile(version: DatasetVersion, *, by: User | None) -> Job:
    """Queue the job that reads and describes a dataset version."""
    return _queued(
        kind=JobKind.PROFILE,
        project=version.dataset.project,
        title=f"Profile {version}",
        payload={"dataset_version": version.pk},
        priority=80,
        created_by=by,
    )


def register(version: ModelVersion, *, by: User | None) -> Job:
    """Queue the job that loads a version in a clean process and reads its signature."""
    return _queued(
        kind=JobKind.REGISTER,
        project=version.model.project,
        title=f"Validate {version}",
        payload={"version": version.pk},
        priority=80,
        created_by=by,
    )


def gate(promotion: PromotionRequest, *, by: User) -> Job:
    """Queue the job that judges a promotion's version against the champion."""
    return _queued(
        kind=JobKind.GATE,
        project=promotion.model.project,
        title=f"Gates of {promotion.version}",
        payload={"promotion": promotion.pk},
        priority=90,
        created_by=by,
    )


def ensemble(search: Job, chosen: Iterable[Trial], *, by: User) -> Job:
    """Queue the job that retrains some trials of a search and pools them.

    It has the experiment and the revision of the search, which stays as it is.

    Raises:
        Forbidden: `by` may not run jobs in the project.
    """
    members = tuple(ChosenTrial(trial=trial.number, values=trial.values) for trial in chosen)
    return _pool(Pooled(search=search.pk, chosen=members), like=search, by=by)


def _pool(pooled: Pooled, *, like: Job, by: User) -> Job:
    """Queue an ensemble that is run like another job of its experiment."""
    access.require(by, like.project, access.Action.WRITE)
    numbers = pooled.numbers
    named = f"trials {', '.join(map(str, numbers))}" if len(numbers) <= NAMED else f"{len(numbers)} trials"
    with transaction.atomic():
        job = _queued(
            kind=JobKind.ENSEMBLE,
            project=like.project,
            experiment=like.experiment,
            revision=like.revision,
            title=f"Ensemble of {named}",
            payload={
                "dataset_version": like.payload.get("dataset_version"),
                **pooled.model_dump(mode="json"),
                "task_done": True,  # it is all in the jobs that follow it
            },
            pool=like.pool,
            priority=like.priority,
            slots=like.slots,
            max_restarts=like.max_restarts,
            created_by=by,
        )
        audit.record("job.ensemble", f"job:{job.pk}", by=by, project=like.project, trials=numbers)
    return job


def clone(job: Job, *, by: User) -> Job:
    """Queue the same revision again; of an ensemble of chosen trials, the same values, run as it is.

    Raises:
        Forbidden: `by` may not run jobs in the project.
        Conflict: the job does not come from an experiment.
    """
    if (pooled := outcomes.pooled_of(job)) is not None:
        return _pool(pooled, like=job, by=by)  # its search may have been revised since
    if job.revision is None or job.parent_id is not None:
        raise Conflict(f"job {job.pk} ({job.kind}) has no experiment of its own to run again")
    return submit(job.revision, by=by)
