"""The progress of running trials, before their executions have ended."""

import time
from typing import Any

import pytest

from jobs.contracts import events as contract
from jobs.models import Job
from jobs.queries import columns, progress
from jobs.queries import jobs as shown
from tests.jobs.yard import PretendWorker, Yard, placed_search


@pytest.fixture
def running(yard: Yard) -> Job:
    """A search of four trials; the first has trained two of its three epochs."""
    worker = PretendWorker()
    job, (attempt,) = placed_search(yard, worker)
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
    read = columns.read(running)
    assert (read["epochs"][0], read["executions"][0]) == (2, 0)
    assert read["under_way"] == {"1": {"1": {"epochs": 2, "of": 3}}}
    first, second = shown.trial(running.trials.get(number=1), best=None).executions
    assert (first.epochs, first.of_epochs) == (2, 3)
    assert (second.epochs, second.of_epochs) == (0, None)


def test_running_executions_count_by_their_epochs(running: Job) -> None:
    now = progress.of_job(running)
    assert (now.done, now.total) == (0, 8)
    assert now.fraction == pytest.approx(2 / 3 / 8)
