"""Jobs as the API and the pages show them."""

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

OF_A_CHILD = ("parent", "kind", "ordinal", "title", "state", "started", "results_json", "warnings")
"""What steps, progress and results of a root read of its children; an error may hold a long traceback."""


def for_lists(rows: JobQuerySet) -> JobQuerySet:
    """Fetch beside the jobs what `detail` needs."""
    children = Prefetch("children", Job.objects.only(*OF_A_CHILD))
    return rows.select_related("project", "experiment", "revision", "created_by").prefetch_related(children)


def steps(root: Job) -> list[StepOut]:
    """List the steps of a root job, those to come with `job` None."""
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
    """Return the state of a root's own part: its search is over while its children run."""
    part_is_done = root.payload.task_done or root.children.all()
    return "completed" if part_is_done and root.state not in FINAL else root.state


def takes_trials(search: Job) -> bool:
    """Say whether a further trial would still count: nothing has been made of the best ones yet."""
    return search.state not in FINAL and not search.children.exists()


def detail(job: Job) -> JobOut:
    """Return a job as the API and the pages show it."""
    return details([job])[0]


def details(jobs: Sequence[Job]) -> list[JobOut]:
    """Return jobs in that shape, with one query for each kind of row that belongs to them."""
    prefetch_related_objects(jobs, "children")  # steps, progress and results all look at them
    families: dict[int, list[int]] = defaultdict(list)  # of which jobs, itself or its root, it is told
    for job in jobs:
        for member in (job, *job.children.all()):
            families[member.pk].append(job.pk)
    made: dict[int, list[ArtifactOut]] = defaultdict(list)
    for row in artifacts(families):
        for told in families[row.job_id]:
            made[told].append(artifact(row))
    became: dict[int, list[MadeVersionOut]] = defaultdict(list)
    versions = ModelVersion.objects.filter(source_job__in=families).order_by("pk")
    for source, model, number, what in versions.values_list("source_job_id", "model__name", "number", "what"):
        for told in families[source]:
            became[told].append({"model": model, "number": number, "what": what})
    return [_detail(job, made[job.pk], became[job.pk]) for job in jobs]


def _detail(job: Job, made: list[ArtifactOut], became: list[MadeVersionOut]) -> JobOut:
    now = progress.of(job)
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
        results=_results(job, made, became),
        error=cast(ErrorOut | None, job.error),
        created_by=job.created_by.username if job.created_by else None,
        created=job.created,
        started=job.started,
        finished=job.finished,
        seconds=(job.finished - job.started).total_seconds() if job.finished and job.started else None,
    )


def why_waiting(job: Job) -> str:
    """Return the sentence that says why a job waits, empty when it does not."""
    if job.state in ("queued", "retrying"):
        return job.why_waiting or "The scheduler has not looked at it yet."
    return ""


def _results(job: Job, made: list[ArtifactOut], became: list[MadeVersionOut]) -> ResultsOut:
    results = job.results_json or (outcomes.results(job).to_json() if job.facts.has_trials else {})
    warnings = [warning for member in (job, *job.children.all()) for warning in member.warnings]
    return cast(ResultsOut, results | {"warnings": warnings, "artifacts": made, "versions": became})


def artifacts(family: Iterable[Job | int]) -> QuerySet[JobArtifact]:
    """Return the artifacts of jobs, of each role and name only the newest attempt's."""
    same = {name: OuterRef(name) for name in ("job", "role", "name")}
    newer = JobArtifact.objects.filter(**same, attempt__gt=OuterRef("attempt"))
    rows = JobArtifact.objects.filter(~Exists(newer), job__in=family)
    return rows.select_related("artifact").order_by("pk")


def artifact(row: JobArtifact) -> ArtifactOut:
    """Return an artifact as the API shows it."""
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
    """Return a search's trials with their executions, the decisions on them and their checkpoints."""
    return job.trials.select_related("answered_by").prefetch_related(*_beside_a_trial())


STANDING = "standing_checkpoints"
OF_A_CHECKPOINT = ("trial", "execution", "step", "epoch", "bytes")


def _beside_a_trial() -> tuple["Prefetch[Any]", str, "Prefetch[Any]"]:
    standing = Checkpoint.objects.kept().order_by("-pk").only(*OF_A_CHECKPOINT)
    return (
        Prefetch("executions", Execution.objects.order_by("number")),
        "decisions",
        Prefetch("checkpoints", standing, to_attr=STANDING),
    )


def trial(
    row: Trial,
    *,
    best: int | None,
    standing: outcomes.Standing | None = None,
    running: Mapping[running_executions.Key, running_executions.UnderWay] | None = None,
) -> TrialOut:
    """Return a trial as the API and the pages show it.

    Args:
        row: the trial.
        best: the number of the best one.
        standing: of all trials of its search, where there are several to show; it is looked up if None.
        running: how far the running trainings of its search are; it is looked up if None.
    """
    prefetch_related_objects([row], *_beside_a_trial())  # what a list has fetched is not fetched again
    several = standing if standing is not None else outcomes.standing(row.job)
    scores = several.scores.get(row.pk)
    if running is None:
        running = running_executions.read(row.job, [row.pk]) if row.state == TrialState.RUNNING else {}
    newest: Checkpoint | None = next(iter(getattr(row, STANDING)), None)
    return TrialOut(
        number=row.number,
        state=row.state,
        values=row.values,
        score=row.score,
        std=row.std,
        best=row.number == best,
        scores=dict(zip(several.objectives, scores, strict=True)) if scores is not None else None,
        pareto=row.pk in several.front if several.objectives else None,
        source=row.source,
        answered_by=row.answered_by.number if row.answered_by is not None else None,
        restarts=row.restarts,
        bracket=row.bracket,
        rung=row.rung,
        decisions=[DecisionOut(**decision._asdict()) for decision in decisions.of(row)],
        error=cast(ErrorOut | None, row.error),
        executions=[_execution(e, running.get((row.pk, e.number))) for e in row.executions.all()],
        checkpoint=newest and _newest_checkpoint(newest),
        started=row.started,
        finished=row.finished,
    )


def _newest_checkpoint(row: Checkpoint) -> TrialCheckpointOut:
    return TrialCheckpointOut(execution=row.execution, step=row.step, epoch=row.epoch, bytes=row.bytes)


def _execution(row: Execution, running: running_executions.UnderWay | None) -> ExecutionOut:
    return ExecutionOut(
        execution=row.number,
        repeat=row.repeat,
        fold=row.fold,
        state=row.state,
        score=row.score,
        best_epoch=row.best_epoch,
        epochs=row.epochs if running is None else running.epochs,
        of_epochs=None if running is None else running.of,
        seed=row.seed,
        metrics=row.metrics,
    )


def best_number(job: Job) -> int | None:
    """Return the number of the search's best trial so far."""
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
    """Return an attempt as the API shows it."""
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
    """Return a checkpoint as the API shows it."""
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
    """List the names of a family's series, or of one trial's."""
    family = [job.pk, *job.children.values_list("pk", flat=True)]
    rows = MetricSeries.objects.filter(job__in=family)
    if trial is not None:
        rows = rows.filter(trial=trial)
    return list(rows.values_list("name", flat=True).distinct().order_by("name"))
