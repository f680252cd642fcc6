"""Reads jobs with their steps, trials, attempts and artifacts, in the form of the API and the pages."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from django.db.models import Count, Exists, OuterRef, Prefetch, QuerySet, prefetch_related_objects

from jobs.contracts.answers.base import ErrorOut
from jobs.contracts.answers.jobs import (
    AttemptOut,
    CheckpointOut,
    JobOut,
    ProgressOut,
    RecordOut,
    StepOut,
)
from jobs.contracts.answers.results import ArtifactOut, MadeVersionOut, ResultsOut
from jobs.contracts.answers.trials import DecisionOut, ExecutionOut, TrialCheckpointOut, TrialOut
from jobs.kinds import KINDS
from jobs.models import (
    Attempt,
    Checkpoint,
    Execution,
    Job,
    JobArtifact,
    MetricSeries,
    ModelVersion,
    Trial,
)
from jobs.models.job import JobQuerySet
from jobs.queries import decisions, outcomes, progress, running_executions
from jobs.queries.steps import steps_of
from jobs.states import FINAL, TrialState

CHILD_FIELDS = ("parent", "kind", "ordinal", "title", "state", "started", "results_json", "warnings")
"""The fields of children that steps, progress and results need. Others are large, such as tracebacks."""


def for_lists(rows: JobQuerySet) -> JobQuerySet:
    """Return the jobs with the related rows that `details` needs."""
    children = Prefetch("children", Job.objects.only(*CHILD_FIELDS))
    return rows.select_related("project", "experiment", "revision", "created_by").prefetch_related(children)


def steps(root: Job) -> list[StepOut]:
    """List the steps of a root job. Those that do not exist yet have `job` None."""
    if root.revision is None or root.parent_id is not None:
        return []
    made: dict[str, list[Job]] = defaultdict(list)
    for child in sorted(root.children.all(), key=lambda child: (child.kind, child.ordinal)):
        made[child.kind].append(child)
    listed: list[StepOut] = []
    for kind in steps_of(root):
        job = root if kind == root.kind and not listed else next(iter(made[kind]), None)
        if job is not None and job is not root:
            made[kind].remove(job)
        state = _own_state(root) if job is root else (job.state if job is not None else None)
        listed.append(
            StepOut(
                kind=KINDS[kind].public_name,
                job=job.pk if job else None,
                state=state,
                title=job.title if job else "",
            )
        )
    return listed


def _own_state(root: Job) -> str:
    """Return the state of a root's own task, which is completed while its children run."""
    task_is_done = root.payload.task_done or root.children.all()
    return "completed" if task_is_done and root.state not in FINAL else root.state


def accepts_trials(search: Job) -> bool:
    """Return whether a search accepts more trials: it has not ended and has no children that use its best."""
    return search.state not in FINAL and not search.children.exists()


def detail(job: Job) -> JobOut:
    """Return a job in the form of the API and the pages."""
    return details([job])[0]


def details(jobs: Sequence[Job]) -> list[JobOut]:
    """Return jobs in this form, with one query for each kind of related row."""
    prefetch_related_objects(jobs, "children")  # used by steps, progress and results
    shown_in: dict[int, list[int]] = defaultdict(list)  # job → the jobs whose results include its rows
    for job in jobs:
        for member in (job, *job.children.all()):
            shown_in[member.pk].append(job.pk)
    made: dict[int, list[ArtifactOut]] = defaultdict(list)
    for row in artifacts(shown_in):
        for pk in shown_in[row.job_id]:
            made[pk].append(artifact(row))
    registered: dict[int, list[MadeVersionOut]] = defaultdict(list)
    versions = ModelVersion.objects.filter(source_job__in=shown_in).order_by("pk")
    for source, model, number, what in versions.values_list("source_job_id", "model__name", "number", "what"):
        for pk in shown_in[source]:
            registered[pk].append({"model": model, "number": number, "what": what})
    return [_detail(job, made[job.pk], registered[job.pk]) for job in jobs]


def _detail(job: Job, made: list[ArtifactOut], registered: list[MadeVersionOut]) -> JobOut:
    now = progress.of_job(job)
    return JobOut(
        id=job.pk,
        kind=job.public_kind,
        title=job.title,
        state=job.state,
        desired=job.desired,
        project=job.project.slug if job.project else None,
        experiment=job.experiment_id,
        revision=job.revision.number if job.revision else None,
        parent=job.parent_id,
        steps=steps(job),
        progress=ProgressOut(
            done=now.done,
            total=now.total,
            unit=now.unit,
            fraction=round(now.fraction, 4),
            eta_seconds=None if now.eta_seconds is None else round(now.eta_seconds, 1),
        ),
        why_waiting=why_waiting(job),
        attempt=job.fence,
        restarts=job.restarts,
        priority=job.priority,
        pool=job.pool,
        slots=job.slots,
        results=_results(job, made, registered),
        error=cast(ErrorOut | None, job.error),
        created_by=job.created_by.username if job.created_by else None,
        created=job.created,
        started=job.started,
        finished=job.finished,
        seconds=(job.finished - job.started).total_seconds() if job.finished and job.started else None,
    )


def why_waiting(job: Job) -> str:
    """Return the reason why a job waits, as a sentence; empty if it does not wait."""
    if job.state in ("queued", "retrying"):
        return job.why_waiting or "The scheduler has not processed the job yet."
    return ""


def _results(job: Job, made: list[ArtifactOut], registered: list[MadeVersionOut]) -> ResultsOut:
    results = job.results_json or (outcomes.results(job).to_json() if job.facts.has_trials else {})
    warnings = [warning for member in (job, *job.children.all()) for warning in member.warnings]
    return cast(ResultsOut, results | {"warnings": warnings, "artifacts": made, "versions": registered})


def artifacts(family: Iterable[Job | int]) -> QuerySet[JobArtifact]:
    """Return the artifacts of jobs. Only the newest attempt's artifact of each role and name is returned."""
    same = {name: OuterRef(name) for name in ("job", "role", "name")}
    newer = JobArtifact.objects.filter(**same, attempt__gt=OuterRef("attempt"))
    rows = JobArtifact.objects.filter(~Exists(newer), job__in=family)
    return rows.select_related("artifact").order_by("pk")


def artifact(row: JobArtifact) -> ArtifactOut:
    """Return an artifact in the form of the API."""
    return {
        "digest": row.artifact_id,
        "role": row.role,
        "bytes": row.artifact.bytes,
        "name": row.name,
        "job": row.job_id,
        "meta": row.meta,
    }


def checkpoints(job: Job) -> QuerySet[Checkpoint]:
    """Return the kept checkpoints of a job and its children."""
    family = [job.pk, *job.children.values_list("pk", flat=True)]
    return Checkpoint.objects.kept().filter(job__in=family).select_related("trial")


def trials(job: Job) -> QuerySet[Trial]:
    """Return the trials of a search with their executions, decisions and checkpoints."""
    return job.trials.select_related("answered_by").prefetch_related(*_trial_relations())


KEPT_CHECKPOINTS = "kept_checkpoints"
CHECKPOINT_FIELDS = ("trial", "execution", "step", "epoch", "bytes")


def _trial_relations() -> tuple["Prefetch[Any]", str, "Prefetch[Any]"]:
    kept = Checkpoint.objects.kept().order_by("-pk").only(*CHECKPOINT_FIELDS)
    return (
        Prefetch("executions", Execution.objects.order_by("number")),
        "decisions",
        Prefetch("checkpoints", kept, to_attr=KEPT_CHECKPOINTS),
    )


def trial(
    row: Trial,
    *,
    best: int | None,
    front: outcomes.ParetoFront | None = None,
    running: Mapping[running_executions.Key, running_executions.RunningExecution] | None = None,
) -> TrialOut:
    """Return a trial in the form of the API and the pages.

    Args:
        row: the trial.
        best: the number of the best trial.
        front: the Pareto front of its search; read from the database if None.
        running: the running executions of its search; read from the database if None.
    """
    prefetch_related_objects([row], *_trial_relations())  # rows of a list are prefetched already
    front = front if front is not None else outcomes.pareto_front(row.job)
    scores = front.scores.get(row.pk)
    if running is None:
        running = running_executions.of_trials(row.job, [row.pk]) if row.state == TrialState.RUNNING else {}
    newest: Checkpoint | None = next(iter(getattr(row, KEPT_CHECKPOINTS)), None)
    return TrialOut(
        number=row.number,
        state=row.state,
        values=row.values,
        score=row.score,
        std=row.std,
        best=row.number == best,
        scores=dict(zip(front.objectives, scores, strict=True)) if scores is not None else None,
        pareto=row.pk in front.members if front.objectives else None,
        source=row.source,
        answered_by=row.answered_by.number if row.answered_by is not None else None,
        restarts=row.restarts,
        bracket=row.bracket,
        rung=row.rung,
        decisions=[DecisionOut(**decision._asdict()) for decision in decisions.of_trial(row)],
        error=cast(ErrorOut | None, row.error),
        executions=[_execution(e, running.get((row.pk, e.number))) for e in row.executions.all()],
        checkpoint=newest and _newest_checkpoint(newest),
        started=row.started,
        finished=row.finished,
    )


def _newest_checkpoint(row: Checkpoint) -> TrialCheckpointOut:
    return TrialCheckpointOut(execution=row.execution, step=row.step, epoch=row.epoch, bytes=row.bytes)


def _execution(row: Execution, running: running_executions.RunningExecution | None) -> ExecutionOut:
    return ExecutionOut(
        execution=row.number,
        repeat=row.repeat,
        fold=row.fold,
        state=row.state,
        score=row.score,
        best_epoch=row.best_epoch,
        epochs=row.epochs if running is None else running.epochs,
        of_epochs=None if running is None else running.last_epoch,
        seed=row.seed,
        metrics=row.metrics,
    )


def best_number(job: Job) -> int | None:
    """Return the number of the search's best trial so far; None without a score."""
    best = outcomes.best_trials(job, limit=1).first()
    return best.number if best else None


def trial_counts(job: Job) -> dict[str, int]:
    """Count a search's trials by state."""
    counts = dict.fromkeys((str(state) for state in TrialState), 0)
    counts.update(job.trials.order_by().values_list("state").annotate(Count("pk")))
    return counts


def attempts(job: Job) -> QuerySet[Attempt]:
    """Return a job's attempts with their workers, and their trials in order."""
    return job.attempts.select_related("worker").prefetch_related(
        Prefetch("trials", Trial.objects.order_by("number").only("number"))
    )


def attempt(row: Attempt) -> AttemptOut:
    """Return an attempt in the form of the API."""
    return AttemptOut(
        number=row.number,
        trials=[trial.number for trial in row.trials.all()],
        worker=row.worker.name,
        state=row.state,
        outcome=row.outcome or None,
        resumed_from=row.resumed_from,
        error=cast(ErrorOut | None, row.error),
        record=cast(RecordOut, row.record),
        assigned=row.assigned,
        claimed=row.claimed,
        ended=row.ended,
    )


def checkpoint(row: Checkpoint) -> CheckpointOut:
    """Return a checkpoint in the form of the API."""
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
    """List the names of the metric series of a job and its children, or of one trial."""
    family = [job.pk, *job.children.values_list("pk", flat=True)]
    rows = MetricSeries.objects.filter(job__in=family)
    if trial is not None:
        rows = rows.filter(trial=trial)
    return list(rows.values_list("name", flat=True).distinct().order_by("name"))
