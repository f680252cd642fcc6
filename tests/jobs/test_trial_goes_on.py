"""A trial that trains on: a completed one to more epochs, a stopped one from where it was."""

from pathlib import Path
from typing import Any

import pytest

from jobs import clock
from jobs.actions import pipeline, schedule, tasks, trials
from jobs.errors import BadInput, StaleState
from jobs.models import Checkpoint, Job, Trial
from jobs.store import LocalStore
from tests.jobs.yard import PretendWorker, Yard, placed_search


def completed(yard: Yard, worker: PretendWorker, **more: Any) -> tuple[Job, Trial]:
    """Return a search whose first trial is completed with a checkpoint of each execution."""
    job, held = placed_search(yard, worker, **more)
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


def test_a_completed_trial_trains_on_under_its_number(
    yard: Yard, worker: PretendWorker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, trial = completed(yard, worker)
    trials.go_on(trial, 10, by=yard.owner)
    assert (trial.state, trial.until) == ("queued", 10)
    assert set(trial.executions.values_list("state", flat=True)) == {"queued"}
    pipeline.advance_all()
    schedule.place()
    (attempt,) = (a for a in worker.claim_all() if trial in a.trials.all())
    monkeypatch.setattr(LocalStore, "path", lambda _store, digest: tmp_path / digest)
    task = tasks.task_for(attempt.pk, folder=tmp_path, threads=1)
    assert task.kind == "trial"
    (plan,) = (plan for plan in task.trials if plan.number == 1)
    assert (plan.epochs, plan.spec.fit.early_stopping) == (10, None), "it trains whatever its patience"
    assert [[c.step for c in e.checkpoints] for e in plan.executions] == [[30], [30]]
    worker.run(attempt, score=0.95)
    trial.refresh_from_db()
    assert trial.state == "completed" and trial.score is not None and trial.score > 0.95


def test_a_completed_trial_whose_checkpoint_is_gone_is_refused(yard: Yard, worker: PretendWorker) -> None:
    _, trial = completed(yard, worker)
    trial.checkpoints.filter(execution=2).update(removed=clock.now())
    with pytest.raises(StaleState, match="only the best trials keep theirs"):
        trials.go_on(trial, 10, by=yard.owner)
    trial.refresh_from_db()
    assert trial.state == "completed"


@pytest.mark.parametrize("epochs", [None, 2, 3, 10_000_000])
def test_epochs_that_are_no_more_or_too_many_are_refused(
    yard: Yard, worker: PretendWorker, epochs: int | None
) -> None:
    _, trial = completed(yard, worker)
    with pytest.raises(BadInput) as refused:
        trials.go_on(trial, epochs, by=yard.owner)
    assert refused.value.problems[0].pointer == "/epochs"


def test_a_stopped_trial_goes_on_from_its_checkpoint_or_is_told_to_be_retried(
    yard: Yard, worker: PretendWorker
) -> None:
    job, _ = completed(yard, worker)
    stopped = job.trials.get(number=2)
    Trial.objects.filter(pk=stopped.pk).update(state="stopped")
    with pytest.raises(StaleState, match="retry it"):
        trials.go_on(stopped, by=yard.owner)
    keep(stopped, 1)
    assert trials.go_on(stopped, by=yard.owner).state == "queued"
    with pytest.raises(StaleState, match="once it is over"):
        trials.go_on(stopped, by=yard.owner)
