"""Reads a search's trials with their executions, as the API and the pages show them."""

from collections.abc import Mapping
from typing import Any, cast

from django.db.models import Count, Prefetch, QuerySet, prefetch_related_objects

from jobs.answers.base import ErrorOut
from jobs.answers.search.trials import DecisionOut, ExecutionOut, TrialCheckpointOut, TrialOut
from jobs.models import Checkpoint, Execution, Job, Trial
from jobs.queries.runs.running_time import breaks_of_trials, running_seconds_of_trial
from jobs.queries.search import outcomes, running_executions, trial_decisions
from jobs.states import FINAL, TrialState

KEPT_CHECKPOINTS = "kept_checkpoints"
"""The trial attribute with its kept checkpoints, newest first."""

CHECKPOINT_FIELDS = ("trial", "execution", "step", "epoch", "bytes")


def accepts_trials(search: Job) -> bool:
    """Return whether a search accepts more trials: it runs, and no child uses its best."""
    return search.state not in FINAL and not search.payload.finishing and not search.children.exists()


def trials_with_relations(job: Job) -> QuerySet[Trial]:
    """Return a search's trials with their executions, decisions and checkpoints."""
    return job.trials.select_related("answered_by").prefetch_related(*_trial_relations())


def _trial_relations() -> tuple["Prefetch[Any]", str, "Prefetch[Any]"]:
    checkpoints = Checkpoint.objects.kept().order_by("-pk").only(*CHECKPOINT_FIELDS)
    return (
        Prefetch("executions", Execution.objects.order_by("number")),
        "decisions",
        Prefetch("checkpoints", checkpoints, to_attr=KEPT_CHECKPOINTS),
    )


def trial_out(
    row: Trial,
    *,
    best: int | None,
    front: outcomes.ParetoFront | None = None,
    running: Mapping[running_executions.Key, running_executions.RunningExecution] | None = None,
    breaks: Mapping[int, float] | None = None,
) -> TrialOut:
    """Return a trial's API representation.

    Args:
        row: the trial.
        best: the best trial's number.
        front: its search's Pareto front; read from the database if None.
        running: its search's running executions; read from the database if None.
        breaks: the breaks of its search's trials; read from the database if None.
    """
    # This costs no query for a row of `trials_with_relations`, which has its related rows already.
    prefetch_related_objects([row], *_trial_relations())
    front = front if front is not None else outcomes.pareto_front(row.job)
    scores = front.scores.get(row.pk)
    if running is None:
        running = (
            running_executions.running_in_trials(row.job, [row.pk]) if row.state == TrialState.RUNNING else {}
        )
    if breaks is None:
        breaks = {} if row.finished is None else breaks_of_trials(row.job, [row.number])
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
        decisions=[DecisionOut(**decision._asdict()) for decision in trial_decisions.decisions_on_trial(row)],
        error=cast(ErrorOut | None, row.error),
        executions=[_execution_out(e, running.get((row.pk, e.number))) for e in row.executions.all()],
        checkpoint=newest
        and TrialCheckpointOut(
            execution=newest.execution, step=newest.step, epoch=newest.epoch, bytes=newest.bytes
        ),
        started=row.started,
        finished=row.finished,
        seconds=running_seconds_of_trial(row, breaks),
    )


def _execution_out(row: Execution, running: running_executions.RunningExecution | None) -> ExecutionOut:
    return ExecutionOut(
        execution=row.number,
        repeat=row.repeat,
        fold=row.fold,
        state=row.shown_state,
        score=row.score,
        best_epoch=row.best_epoch,
        epochs=row.epochs if running is None else running.epochs,
        of_epochs=None if running is None else running.last_epoch,
        seed=row.seed,
        metrics=row.metrics,
    )


def best_number(job: Job) -> int | None:
    """Return the search's best trial so far, by number; None without a score."""
    best = outcomes.best_trials(job, limit=1).first()
    return best.number if best else None


def trial_counts(job: Job) -> dict[str, int]:
    """Count a search's trials by state."""
    counts = dict.fromkeys((str(state) for state in TrialState), 0)
    counts.update(job.trials.values_list("state").annotate(Count("pk")))
    return counts
