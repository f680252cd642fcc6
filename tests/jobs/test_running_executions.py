"""How far running trials are, before their executions have ended."""

import time
from typing import Any

import pytest

from jobs.contracts import events as said
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
    worker.say(
        attempt,
        said.Started(time=now),
        said.TrialBegun(trial=trial.number, time=now),
        said.ExecutionDone(state="running", **whose),
        said.Metric(points=(("val_accuracy", 1, 0.5, now), ("val_accuracy", 2, 0.6, now)), **whose),
        said.Metric(x="second", points=(("system/cpu", 900, 0.5, now),), **whose),
    )
    return Job.objects.get(pk=job.pk)


def test_a_running_trial_says_its_epoch_to_tables_and_programs(running: Job) -> None:
    read = columns.read(running)
    assert (read["epochs"][0], read["executions"][0]) == (2, 0)
    assert read["under_way"] == {"1": {"1": {"epochs": 2, "of": 3}}}
    first, second = shown.trial(running.trials.get(number=1), best=None).executions
    assert (first.epochs, first.of_epochs) == (2, 3)
    assert (second.epochs, second.of_epochs) == (0, None)


def test_what_runs_counts_as_far_as_it_has_come(running: Job) -> None:
    now = progress.of(running)
    assert (now.done, now.total) == (0, 8)
    assert now.fraction == pytest.approx(2 / 3 / 8)
