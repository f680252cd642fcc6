"""The remaining time before a trial has ended."""

import datetime as dt
import time
from typing import Any

import pytest
from django.utils import timezone

from jobs import clock
from jobs.actions.runs import attempt_end, control, pipeline, schedule
from jobs.messages import events as contract
from jobs.models import Attempt, Job, Trial
from jobs.queries.runs import progress
from jobs.states import Outcome
from tests.jobs.yard import PretendWorker, Yard, placed_search
from tests.present import present


class Underway:
    """A search with four trials, two executions each, three epochs each. The first trial is at work."""

    def __init__(self, installation: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
        self.worker, self.monkeypatch = PretendWorker(), monkeypatch
        self.job, (self.attempt,) = placed_search(installation, self.worker)
        self.trial = self.attempt.trials.order_by("number")[:1].get()
        self.began = timezone.now()

    def report_epochs(self, attempt: Attempt, *epochs: int, execution: int = 1) -> None:
        """Report that the attempt has trained these epochs."""
        now = time.time()
        whose: dict[str, Any] = {"trial": self.trial.number, "execution": execution, "time": now}
        self.worker.report(
            attempt,
            contract.Started(time=now),
            contract.TrialBegun(trial=self.trial.number, time=now),
            contract.ExecutionDone(state="running", **whose),
            *(contract.Metric(points=(("val_loss", epoch, 0.5, now),), **whose) for epoch in epochs),
        )

    def left_after(self, seconds: float) -> float | None:
        """Return the remaining time a number of seconds after the current attempt was claimed."""
        job = Job.objects.get(pk=self.job.pk)
        now = present(job.attempts.latest("number").claimed) + dt.timedelta(seconds=seconds)
        self.monkeypatch.setattr(clock, "estimate", lambda: now)
        return progress.progress_of_job(job).eta_seconds


@pytest.fixture
def at_work(installation: Yard, monkeypatch: pytest.MonkeyPatch) -> Underway:
    return Underway(installation, monkeypatch)


def test_before_a_trial_has_ended_the_remaining_time_is_estimated_from_its_epochs(at_work: Underway) -> None:
    assert at_work.left_after(25.0) is None
    at_work.report_epochs(at_work.attempt, 1, 2)
    # Ten seconds an epoch, in the middle of the third: eight executions less these two and a half epochs.
    assert at_work.left_after(25.0) == pytest.approx(8 * 30 - 25, rel=0.02)


def test_a_first_trial_that_resumes_after_a_pause_is_timed_from_the_resumption(
    installation: Yard, at_work: Underway
) -> None:
    at_work.report_epochs(at_work.attempt, 1)
    control.pause(at_work.attempt.job, by=installation.owner)
    attempt_end.finish(at_work.attempt.pk, Outcome.PAUSED)
    pipeline.advance_all()
    Trial.objects.filter(pk=at_work.trial.pk).update(started=timezone.now() - dt.timedelta(hours=5))
    control.resume(Job.objects.get(pk=at_work.job.pk), by=installation.owner)
    pipeline.advance_all()
    schedule.place_jobs()
    (again,) = at_work.worker.claim_all()
    at_work.report_epochs(again, 2)
    assert again.number == 2
    # Fifteen seconds for an epoch and a half in this attempt.
    assert at_work.left_after(15.0) == pytest.approx(8 * 30 - 25, rel=0.15)


def test_with_early_stopping_no_remaining_time_is_estimated_from_epochs(
    installation: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_work = Underway(installation, monkeypatch)
    revision = at_work.job.revision
    assert revision is not None
    revision.spec_json["fit"]["early_stopping"] = {"monitor": "val_loss", "patience": 2}
    type(revision).objects.filter(pk=revision.pk).update(spec_json=revision.spec_json)
    at_work.report_epochs(at_work.attempt, 1, 2)
    assert at_work.left_after(25.0) is None
