"""Reads jobs with their steps, attempts and artifacts, as the API and the pages show them."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import cast

from django.db.models import Exists, OuterRef, Prefetch, Q, QuerySet, prefetch_related_objects

from jobs import program
from jobs.answers.base import ErrorOut
from jobs.answers.code.sandbox import SandboxOut
from jobs.answers.runs.jobs import (
    AttemptOut,
    CheckpointOut,
    JobOut,
    ProgressOut,
    RecordOut,
    StepOut,
)
from jobs.answers.runs.results import ArtifactOut, MadeVersionOut, ResultsOut
from jobs.kinds import KINDS
from jobs.messages.sandbox import SandboxRecord
from jobs.models import (
    Attempt,
    Checkpoint,
    Job,
    JobArtifact,
    MetricSeries,
    ModelVersion,
    Trial,
    User,
)
from jobs.models.job import JobQuerySet
from jobs.queries.runs import progress
from jobs.queries.runs.health import scheduler_is_alive
from jobs.queries.runs.reservations import name_holders
from jobs.queries.runs.running_time import running_seconds
from jobs.queries.runs.steps import steps_of
from jobs.queries.search import outcomes
from jobs.states import FINAL, WAITING

CHILD_FIELDS = (
    *("parent", "kind", "ordinal", "title", "state", "started", "progress", "results_json", "warnings"),
)
"""The child fields that steps, progress and results need. Others are large, such as tracebacks."""

NOT_PLACED = "The scheduler has not processed the job yet."
NO_SCHEDULER = f"No scheduler runs; start one with: {program.command_line('scheduler')}"


def jobs_for_lists(rows: JobQuerySet) -> JobQuerySet:
    """Return the jobs with the related rows that `jobs_out` needs."""
    children = Prefetch("children", Job.objects.only(*CHILD_FIELDS))
    return rows.select_related("project", "experiment", "revision", "created_by").prefetch_related(children)


def steps_out(root: Job) -> list[StepOut]:
    """List a root job's steps. Those that do not exist yet have `job` None."""
    if root.revision is None or root.parent_id is not None:
        return []
    children: dict[str, list[Job]] = defaultdict(list)
    for child in sorted(root.children.all(), key=lambda child: (child.kind, child.ordinal)):
        children[child.kind].append(child)
    steps: list[StepOut] = []
    for kind in steps_of(root):
        # The first step is the root itself; the others are its children, each the job of one step.
        job = root if kind == root.kind and not steps else next(iter(children[kind]), None)
        if job is not None and job is not root:
            children[kind].remove(job)
        state = _own_state(root) if job is root else (job.state if job is not None else None)
        steps.append(
            StepOut(
                kind=KINDS[kind].public_name,
                job=job.pk if job else None,
                state=state,
                title=job.title if job else "",
            )
        )
    return steps


def _own_state(root: Job) -> str:
    """Return the state of a root's own task, which is completed while its children run."""
    task_is_done = root.payload.task_done or root.children.all()
    return "completed" if task_is_done and root.state not in FINAL else root.state


def job_out(job: Job, reader: User | None = None) -> JobOut:
    """Return a job's API representation; see `jobs_out`."""
    return jobs_out([job], reader)[0]


def jobs_out(jobs: Sequence[Job], reader: User | None = None) -> list[JobOut]:
    """Return the jobs' API representation, with one query for each kind of related row.

    Args:
        jobs: the jobs.
        reader: who reads them, so that a reason to wait may name for whom slots are reserved.
    """
    prefetch_related_objects(jobs, "children")  # used by steps, progress and results
    shown_in: dict[int, list[int]] = defaultdict(list)  # job → the jobs whose results include its rows
    for job in jobs:
        for member in (job, *job.children.all()):
            shown_in[member.pk].append(job.pk)
    artifacts_of: dict[int, list[ArtifactOut]] = defaultdict(list)
    for row in newest_artifacts(shown_in):
        for pk in shown_in[row.job_id]:
            artifacts_of[pk].append(artifact_out(row))
    registered = _registered_versions(jobs, shown_in, artifacts_of)
    reasons = reasons_to_wait(jobs, reader)
    seconds = running_seconds(jobs, shown_in)
    return [
        _job_out(job, reasons[job.pk], artifacts_of[job.pk], registered[job.pk], seconds.get(job.pk))
        for job in jobs
    ]


def _registered_versions(
    jobs: Sequence[Job],
    shown_in: Mapping[int, Sequence[int]],
    artifacts_of: Mapping[int, Sequence[ArtifactOut]],
) -> dict[int, list[MadeVersionOut]]:
    """Return the versions with the jobs' models; a model that equals an earlier one is its version."""
    digests: dict[int, set[str]] = {
        job.pk: {file["digest"] for file in artifacts_of.get(job.pk, ()) if file["role"] == "model"}
        for job in jobs
    }
    project_of = {job.pk: job.project_id for job in jobs}
    registered: dict[int, list[MadeVersionOut]] = defaultdict(list)
    versions = ModelVersion.objects.filter(
        Q(source_job__in=shown_in) | Q(artifact__in=set().union(*digests.values()))
    )
    columns = ("source_job_id", "artifact_id", "model__project_id", "model__name", "number", "what")
    for source, digest, project, model, number, variant in versions.order_by("pk").values_list(*columns):
        made_by = shown_in.get(source, ()) if source is not None else ()
        for pk, of_job in digests.items():
            # Models of other projects may be hidden from the reader.
            if pk in made_by or (digest in of_job and project == project_of[pk]):
                registered[pk].append({"model": model, "number": number, "what": variant})
    return registered


def _job_out(
    job: Job,
    why_waiting: str,
    job_artifacts: list[ArtifactOut],
    registered: list[MadeVersionOut],
    seconds: float | None,
) -> JobOut:
    # A search stores its results only when it ends; until then they are computed from its trials.
    results = job.results_json or (outcomes.results_of_root(job).to_json() if job.facts.has_trials else {})
    warnings = [
        {**warning, "job": member.pk, "step": member.public_kind if member.pk == job.pk else member.label}
        for member in (job, *job.children.all())
        for warning in member.warnings
    ]
    return JobOut(
        id=job.pk,
        kind=job.public_kind,
        title=job.title,
        state=job.state,
        desired=job.desired,
        finishing=job.payload.finishing,
        project=job.project.slug if job.project else None,
        experiment=job.experiment_id,
        revision=job.revision.number if job.revision else None,
        parent=job.parent_id,
        steps=steps_out(job),
        progress=_progress_out(job),
        why_waiting=why_waiting,
        attempt=job.fence,
        restarts=job.restarts,
        priority=job.priority,
        pool=job.pool,
        labels=job.labels,
        slots=job.slots,
        max_minutes=job.max_minutes,
        results=cast(
            ResultsOut, results | {"warnings": warnings, "artifacts": job_artifacts, "versions": registered}
        ),
        sandbox=cast(SandboxOut | None, job.sandbox_json),
        error=cast(ErrorOut | None, job.error),
        created_by=job.created_by.username if job.created_by else None,
        created=job.created,
        started=job.started,
        finished=job.finished,
        seconds=seconds,
    )


def reasons_to_wait(jobs: Sequence[Job], reader: User | None = None) -> dict[int, str]:
    """Return job id → why it waits, as a sentence. It is empty for a job that does not wait.

    Args:
        jobs: the jobs.
        reader: who reads the sentences; without one, holders of reservations are not named.
    """
    waiting = {job.pk: job.why_waiting for job in jobs if job.state in WAITING}
    if not all(waiting.values()):
        unknown = NOT_PLACED if scheduler_is_alive() else NO_SCHEDULER
        waiting = {pk: reason or unknown for pk, reason in waiting.items()}
    if reader is not None:
        waiting = name_holders(waiting, reader)
    return {job.pk: waiting.get(job.pk, "") for job in jobs}


def newest_artifacts(jobs: Iterable[Job | int]) -> QuerySet[JobArtifact]:
    """Return jobs' artifacts. For each role and name, only the newest attempt's counts."""
    same_file = {name: OuterRef(name) for name in ("job", "role", "name")}
    newer = JobArtifact.objects.filter(**same_file, attempt__gt=OuterRef("attempt"))
    rows = JobArtifact.objects.filter(~Exists(newer), job__in=jobs)
    return rows.select_related("artifact").order_by("pk")


def artifact_out(row: JobArtifact) -> ArtifactOut:
    """Return an artifact's API representation."""
    return {
        "digest": row.artifact_id,
        "role": row.role,
        "bytes": row.artifact.bytes,
        "name": row.name,
        "job": row.job_id,
        "meta": row.meta,
    }


def kept_checkpoints(job: Job) -> QuerySet[Checkpoint]:
    """Return the checkpoints that a job and its children keep."""
    members = [job.pk, *job.children.values_list("pk", flat=True)]
    return Checkpoint.objects.kept().filter(job__in=members).select_related("trial")


def attempts_with_trials(job: Job) -> QuerySet[Attempt]:
    """Return a job's attempts with their workers, and their trials in order."""
    return job.attempts.select_related("worker").prefetch_related(
        Prefetch("trials", Trial.objects.order_by("number").only("number"))
    )


def attempt_out(row: Attempt) -> AttemptOut:
    """Return an attempt's API representation."""
    return AttemptOut(
        number=row.number,
        trials=[trial.number for trial in row.trials.all()],
        worker=row.worker.name,
        state=row.state,
        outcome=row.outcome or None,
        resumed_from=row.resumed_from,
        error=cast(ErrorOut | None, row.error),
        sandbox=cast(SandboxRecord | None, row.sandbox_json),
        record=cast(RecordOut, row.record),
        assigned=row.assigned,
        claimed=row.claimed,
        ended=row.ended,
    )


def checkpoint_out(row: Checkpoint) -> CheckpointOut:
    """Return a checkpoint's API representation."""
    return CheckpointOut(
        job=row.job_id,
        trial=row.trial.number if row.trial else None,
        execution=row.execution,
        attempt=row.attempt,
        step=row.step,
        epoch=row.epoch,
        bytes=row.bytes,
        manifest=row.manifest,
        created=row.created,
    )


def metric_names(job: Job, trial: Trial | None = None) -> list[str]:
    """List the metric names for a job and its children, or for one trial."""
    members = [job.pk, *job.children.values_list("pk", flat=True)]
    rows = MetricSeries.objects.filter(job__in=members)
    if trial is not None:
        rows = rows.filter(trial=trial)
    return list(rows.values_list("name", flat=True).distinct().order_by("name"))


def _progress_out(job: Job) -> ProgressOut:
    now = progress.progress_of_job(job)
    return ProgressOut(
        done=now.done,
        total=now.total,
        unit=now.unit,
        fraction=round(now.fraction, 4),
        eta_seconds=None if now.eta_seconds is None else round(now.eta_seconds, 1),
        phase=now.phase,
        time_limited=now.max_minutes is not None,
        max_minutes=now.max_minutes,
    )
