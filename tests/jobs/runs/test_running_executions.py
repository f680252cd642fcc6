"""The progress of running trials, before their executions have ended."""

import time
from typing import Any

import pytest
from django.utils import timezone

from jobs.actions.runs import attempt_end, attempts, control, pipeline
from jobs.actions.search import trials
from jobs.messages import events as contract
from jobs.models import Attempt, Job
from jobs.queries.runs import progress
from jobs.queries.search import trial_columns
from jobs.queries.search import trials as trial_queries
from jobs.states import Outcome
from tests.jobs.yard import PretendWorker, Yard, placed_search


@pytest.fixture
def running(installation: Yard) -> Job:
    """A search with four trials; the first has trained two epochs out of three."""
    worker = PretendWorker()
    job, (attempt,) = placed_search(installation, worker)
    (trial,) = attempt.trials.order_by("number")[:1]
    now = time.time()
    whose: dict[str, Any] = {"trial": trial.number, "execution": 1, "time": now}
    worker.report(
        attempt,
        contract.Started(time=now),
        contract.TrialBegun(trial=trial.number, time=now),
        contract.ExecutionDone(state="running", **whose),
        contract.Metric(points=(("val_accuracy", 1, 0.5, now), ("val_accuracy", 2, 0.6, now)), **whose),
        contract.Metric(x="second", points=(("system/cpu", 900, 0.5, now),), **whose),
    )
    return Job.objects.get(pk=job.pk)


def test_tables_and_rest_show_the_epoch_of_a_running_trial(running: Job) -> None:
    read = trial_columns.read_columns(running)
    assert (read["epochs"][0], read["executions"][0]) == (2, 0)
    assert read["under_way"] == {"1": {"1": {"epochs": 2, "of": 3}}}
    first, second = trial_queries.trial_out(running.trials.get(number=1), best=None).executions
    assert (first.epochs, first.of_epochs) == (2, 3)
    assert (second.epochs, second.of_epochs) == (0, None)


def events_of(attempt: Attempt, *events: contract.RunnerEvent) -> None:
    """Report further events from an attempt."""
    # After those that the fixture has reported.
    attempts.record_events(attempt.pk, events, spool_position=100, stored={})


def checkpoint(epoch: int) -> contract.CheckpointCommitted:
    folder = f"search/1/{epoch}"
    return contract.CheckpointCommitted(
        time=time.time(),
        trial=1,
        execution=1,
        folder=folder,
        step=9 * epoch,
        epoch=epoch,
        manifest="0" * 64,
        bytes=1,
    )


@pytest.mark.parametrize(
    "outcome", [Outcome.STOPPED, Outcome.KILLED, Outcome.FAILED, Outcome.PAUSED, Outcome.LOST]
)
def test_an_execution_that_ends_early_keeps_the_epochs_of_its_checkpoint(
    installation: Yard, running: Job, outcome: Outcome
) -> None:
    attempt = running.attempts.get()
    events_of(attempt, checkpoint(1), checkpoint(2))
    attempt_end.finish(attempt.pk, outcome)
    execution = running.trials.get(number=1).executions.get(number=1)
    assert (execution.epochs, execution.state) != (0, "running")
    assert execution.epochs == 2


def test_the_progress_does_not_fall_when_a_search_is_paused_and_resumed(
    installation: Yard, running: Job
) -> None:
    attempt = running.attempts.get()
    before = progress.progress_of_job(running).fraction
    control.pause(running, by=installation.owner)
    events_of(attempt, checkpoint(2))
    attempt_end.finish(attempt.pk, Outcome.PAUSED)
    pipeline.advance_all()
    paused = Job.objects.get(pk=running.pk)
    assert paused.state == "paused"
    assert progress.progress_of_job(paused).fraction == before > 0
    control.resume(paused, by=installation.owner)
    pipeline.advance_all()
    resumed = Job.objects.get(pk=running.pk)
    assert progress.progress_of_job(resumed).fraction == before
    control.stop(resumed, by=installation.owner)
    stopped = Job.objects.get(pk=running.pk)
    assert (stopped.state, progress.progress_of_job(stopped).fraction) == ("stopped", before)


def test_a_retried_execution_without_a_checkpoint_begins_at_zero(installation: Yard, running: Job) -> None:
    attempt = running.attempts.get()
    events_of(attempt, checkpoint(2))
    attempt_end.finish(attempt.pk, Outcome.FAILED)
    trial = running.trials.get(number=1)
    trial.checkpoints.update(removed=timezone.now())
    trials.retry(trial, by=installation.owner)
    assert trial.executions.get(number=1).epochs == 0


def test_running_executions_count_by_their_epochs(running: Job) -> None:
    now = progress.progress_of_job(running)
    assert (now.done, now.total) == (0, 8)
    assert now.fraction == pytest.approx(2 / 3 / 8)
