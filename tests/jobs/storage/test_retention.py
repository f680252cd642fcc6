"""Removing checkpoints while the scheduler waits for it."""

from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest

from jobs.actions.search import trials
from jobs.actions.storage import retention
from jobs.models import Checkpoint, Job
from jobs.queries.search import outcomes
from tests.jobs.yard import PretendWorker, Yard, placed_search

KEPT: dict[str, Any] = {"attempt": 1, "step": 1, "epoch": 1, "bytes": 1, "folder": "1", "manifest": "m"}


def test_a_sweep_ends_in_time_and_reaches_every_job_eventually(
    installation: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = [installation.submit() for _ in range(4)]
    *ended, running = (job.pk for job in jobs)
    Job.objects.filter(pk__in=ended).update(state="completed")
    Checkpoint.objects.bulk_create(Checkpoint(job=job, **KEPT) for job in jobs)
    looked: list[int] = []
    monkeypatch.setattr(retention, "_thin_out", lambda job, _deadline: looked.append(job.pk))
    seen: set[int] = set()
    for _ in range(50):  # a look takes a second here, and there is time for two
        monkeypatch.setattr(retention, "time", SimpleNamespace(monotonic=count().__next__))
        looked.clear()
        retention.remove_superfluous()
        assert (looked[0], len(looked)) == (running, 2)
        seen |= set(looked)
    assert seen == {running, *ended}


def test_the_checkpoints_of_a_trial_continued_during_the_sweep_are_kept(
    installation: Yard, worker: PretendWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    job, held = placed_search(installation, worker)
    worker.run(held[0])
    trial = job.trials.get(number=1)
    Checkpoint.objects.bulk_create(
        Checkpoint(job=job, trial=trial, execution=n, **KEPT | {"folder": str(n)}) for n in (1, 2)
    )
    original = retention._superfluous_checkpoints

    def gone_on_since(job: Job) -> list[Checkpoint]:
        superfluous = original(job)
        trials.continue_training(trial, 10, by=installation.owner)
        return superfluous

    monkeypatch.setattr(outcomes, "best_trials", lambda _job, limit: job.trials.none())
    monkeypatch.setattr(retention, "_superfluous_checkpoints", gone_on_since)
    assert (retention.remove_superfluous(), job.checkpoints.kept().count()) == (0, 2)
