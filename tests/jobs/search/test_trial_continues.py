"""Continued trials: completed ones train to more epochs, stopped ones resume from their checkpoint."""

import time
from pathlib import Path
from typing import Any

import pytest
from django.db import transaction

from jobs import clock
from jobs.actions import transition
from jobs.actions.runs import attempt_end, control, pipeline, schedule, tasks
from jobs.actions.search import trials
from jobs.errors import BadInput, StaleState
from jobs.messages import events as contract
from jobs.messages.training import TrialTask
from jobs.models import Attempt, Checkpoint, Job, Trial
from jobs.states import Outcome, TrialState
from jobs.store import LocalStore
from tests.jobs.yard import PretendWorker, Yard, begun, ended, placed_search


def completed(installation: Yard, worker: PretendWorker, **more: Any) -> tuple[Job, Trial]:
    """Return a search whose first trial is completed with a checkpoint of each execution."""
    job, held = placed_search(installation, worker, **more)
    worker.run(held[0])
    trial = job.trials.get(number=1)
    for execution in (1, 2):
        keep(trial, execution)
    return job, trial


def keep(trial: Trial, execution: int) -> None:
    Checkpoint.objects.create(
        job=trial.job,
        trial=trial,
        execution=execution,
        attempt=1,
        step=30,
        epoch=3,
        folder=f"job-{trial.job_id}/trial-{trial.number}/execution-{execution}/30",
        manifest="m",
        bytes=1,
    )


def test_an_event_of_an_old_attempt_does_not_change_a_continued_trial(
    installation: Yard, worker: PretendWorker
) -> None:
    _, trial = completed(installation, worker)
    trials.continue_training(trial, 10, by=installation.owner)
    with transaction.atomic(), pytest.raises(StaleState):
        transition.move_trial_unlogged(
            trial, TrialState.FAILED, fence=99, error={"code": "x", "message": "x"}
        )
    assert set(trial.executions.values_list("state", flat=True)) == {"queued"}


def test_a_completed_trial_continues_under_its_number(
    installation: Yard, worker: PretendWorker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, trial = completed(installation, worker)
    trials.continue_training(trial, 10, by=installation.owner)
    assert (trial.state, trial.until) == ("queued", 10)
    assert set(trial.executions.values_list("state", flat=True)) == {"queued"}
    pipeline.advance_all()
    schedule.place_jobs()
    (attempt,) = (a for a in worker.claim_all() if trial in a.trials.all())
    monkeypatch.setattr(LocalStore, "path", lambda _store, digest: tmp_path / digest)
    task = tasks.task_for(attempt.pk, folder=tmp_path, threads=1)
    assert isinstance(task, TrialTask)
    (plan,) = (plan for plan in task.trials if plan.number == 1)
    assert (plan.epochs, plan.spec.fit.early_stopping) == (10, None), "it trains without early stopping"
    assert [[c.step for c in e.checkpoints] for e in plan.executions] == [[30], [30]]
    worker.run(attempt, score=0.95)
    trial.refresh_from_db()
    assert trial.state == "completed" and trial.score is not None and trial.score > 0.95


def test_a_completed_trial_without_a_checkpoint_is_not_continued(
    installation: Yard, worker: PretendWorker
) -> None:
    _, trial = completed(installation, worker)
    trial.checkpoints.filter(execution=2).update(removed=clock.now())
    with pytest.raises(StaleState, match="only the best trials keep theirs"):
        trials.continue_training(trial, 10, by=installation.owner)
    trial.refresh_from_db()
    assert trial.state == "completed"


@pytest.mark.parametrize("epochs", [None, 2, 3, 10_000_000])
def test_too_few_or_too_many_epochs_are_refused(
    installation: Yard, worker: PretendWorker, epochs: int | None
) -> None:
    _, trial = completed(installation, worker)
    with pytest.raises(BadInput) as refused:
        trials.continue_training(trial, epochs, by=installation.owner)
    assert refused.value.problems[0].pointer == "/epochs"


def test_a_stopped_trial_resumes_only_from_a_checkpoint(installation: Yard, worker: PretendWorker) -> None:
    job, _ = completed(installation, worker)
    stopped = job.trials.get(number=2)
    Trial.objects.filter(pk=stopped.pk).update(state="stopped")
    with pytest.raises(StaleState, match="retry it"):
        trials.continue_training(stopped, by=installation.owner)
    keep(stopped, 1)
    with pytest.raises(BadInput) as refused:
        trials.continue_training(stopped, 10, by=installation.owner)
    assert refused.value.problems[0].pointer == "/epochs", "it resumes to its own end"
    stopped.refresh_from_db()
    assert stopped.state == "stopped"
    assert trials.continue_training(stopped, by=installation.owner).state == "queued"
    with pytest.raises(StaleState, match="only a final trial"):
        trials.continue_training(stopped, by=installation.owner)


def continued(installation: Yard, worker: PretendWorker) -> tuple[Attempt, Trial]:
    """Return a trial that continues to epoch 10, and its attempt."""
    _, trial = completed(installation, worker)
    trials.continue_training(trial, 10, by=installation.owner)
    schedule.place_jobs()
    (attempt,) = (a for a in worker.claim_all() if trial in a.trials.all())
    worker.report(attempt, begun(trial))
    return attempt, trial


def assert_unchanged(trial: Trial) -> None:
    trial.refresh_from_db()
    assert trial.state == "completed"
    assert trial.score == pytest.approx(0.915)
    assert set(trial.executions.values_list("state", "epochs")) == {("completed", 3)}
    assert set(trial.executions.values_list("score", flat=True)) == {0.91, 0.92}


def test_a_continued_trial_that_fails_keeps_its_earlier_result_and_reports_the_reason(
    installation: Yard, worker: PretendWorker
) -> None:
    attempt, trial = continued(installation, worker)
    failed = contract.ExecutionDone(time=time.time(), trial=1, execution=1, state="failed")
    worker.report(attempt, failed, ended(trial, "the loss became nan"))
    assert_unchanged(trial)
    assert trial.error is not None
    assert (
        trial.error["message"]
        == "it keeps its earlier result: continuing to epoch 10 failed: the loss became nan"
    )


@pytest.mark.parametrize("outcome", [Outcome.STOPPED, Outcome.KILLED, Outcome.FAILED, Outcome.LOST])
def test_a_continued_trial_whose_attempt_ends_keeps_its_earlier_result(
    outcome: Outcome, installation: Yard, worker: PretendWorker
) -> None:
    attempt, trial = continued(installation, worker)
    Job.objects.filter(pk=trial.job_id).update(max_restarts=0)
    error = {"code": "runner_killed", "message": "killed"}
    attempt_end.finish(attempt.pk, outcome, error=error if outcome in ("failed", "lost") else None)
    assert_unchanged(trial)


def test_a_continued_trial_keeps_its_result_when_its_search_is_stopped_first(
    installation: Yard, worker: PretendWorker
) -> None:
    job, trial = completed(installation, worker)
    trials.continue_training(trial, 10, by=installation.owner)
    control.stop(job, by=installation.owner)
    assert_unchanged(trial)
