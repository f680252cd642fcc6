"""Trial batches that fail, are lost, or stop."""

import pytest

from jobs import clock
from jobs.actions.runs import attempt_end, attempts, control, pipeline
from jobs.errors import StaleFence
from jobs.models import Attempt, Job
from jobs.states import Outcome
from tests.jobs.search.test_batches import batch_of, next_batch, states
from tests.jobs.yard import PretendWorker, Yard, begun, ended
from tests.present import present


@pytest.fixture
def solo(installation: Yard) -> PretendWorker:
    return PretendWorker(slots=1)


def test_a_trial_in_the_middle_that_fails_ends_alone(installation: Yard, solo: PretendWorker) -> None:
    attempt = batch_of(installation, solo)
    first, second, third, *rest = attempt.trials.order_by("number")
    solo.run_trial(attempt, first, score=0.5)
    solo.report(attempt, begun(second), ended(second, "the loss became nan"))
    solo.run_trial(attempt, third)
    assert states(attempt) == ["completed", "failed", "completed"] + ["queued"] * len(rest)
    first.refresh_from_db()
    second.refresh_from_db()
    assert first.score == pytest.approx(0.51)
    assert present(second.error)["message"] == "the loss became nan"
    assert attempts.renew(solo.row.pk, [attempt.pk]) == {attempt.pk: "running"}


def test_a_lost_runner_costs_only_its_running_trial_a_restart(
    installation: Yard, solo: PretendWorker
) -> None:
    attempt = batch_of(installation, solo)
    done, at, *_ = attempt.trials.order_by("number")
    solo.run_trial(attempt, done)
    solo.report(attempt, begun(at))
    attempt_end.finish(attempt.pk, Outcome.LOST, error={"code": "runner_killed", "message": "killed"})
    assert set(states(attempt)) == {"completed", "queued"}
    assert {t.number: t.restarts for t in attempt.trials.all() if t.restarts} == {at.number: 1}

    again = next_batch(attempt.job, solo)
    assert done not in again.trials.all()
    assert {at, *attempt.trials.exclude(pk=done.pk)} <= set(again.trials.all())


def test_a_stale_attempt_changes_no_trial(installation: Yard, solo: PretendWorker) -> None:
    stale = batch_of(installation, solo)
    at = stale.trials.order_by("number")[0]
    solo.report(stale, begun(at))
    Attempt.objects.filter(pk=stale.pk).update(lease_until=clock.seconds_from_now(-1))
    attempt_end.reap()
    newer = next_batch(stale.job, solo)
    solo.report(newer, begun(at))
    with pytest.raises(StaleFence):
        solo.report(stale, ended(at))
    at.refresh_from_db()
    assert (at.state, at.attempt) == ("running", newer.number)

    Attempt.objects.filter(pk=stale.pk).update(
        state="running"
    )  # even if the attempt's own row were still running
    solo.report(stale, ended(at))
    at.refresh_from_db()
    assert (at.state, at.finished) == ("running", None)


def test_a_failed_task_fails_its_running_trial(installation: Yard, solo: PretendWorker) -> None:
    attempt = batch_of(installation, solo)
    solo.report(attempt, begun(attempt.trials.order_by("number")[0]))
    attempt_end.finish(attempt.pk, Outcome.FAILED, error={"code": "out_of_memory", "message": "too large"})
    assert sorted(states(attempt), key="failed".__ne__) == ["failed"] + ["queued"] * (
        len(states(attempt)) - 1
    )


def test_a_task_that_cannot_begin_fails_its_first_trial_so_that_the_search_ends(
    installation: Yard, solo: PretendWorker
) -> None:
    attempt = batch_of(installation, solo)
    attempt_end.finish(attempt.pk, Outcome.FAILED, error={"code": "bad_data", "message": "no such column"})
    assert states(attempt)[0] == "failed"
    assert set(states(attempt)[1:]) == {"queued"}


@pytest.mark.parametrize(("wish", "outcome"), [("pause", Outcome.PAUSED), ("stop", Outcome.STOPPED)])
def test_trials_that_had_not_begun_pause_and_stop_with_the_rest(
    wish: str, outcome: Outcome, installation: Yard, solo: PretendWorker
) -> None:
    attempt = batch_of(installation, solo)
    solo.report(attempt, begun(attempt.trials.order_by("number")[0]))
    getattr(control, wish)(attempt.job, by=installation.owner)
    assert set(states(attempt)) == {"running", "queued"}, "its runner still holds them"
    attempt_end.finish(attempt.pk, outcome)
    pipeline.advance_all()
    assert set(states(attempt)) == {str(outcome)}
    assert Job.objects.get(pk=attempt.job_id).state == outcome


def test_failures_in_a_row_end_the_search_and_stop_the_rest_of_the_batch(
    installation: Yard, solo: PretendWorker
) -> None:
    attempt = batch_of(installation, solo, max_consecutive_failures=2)
    for trial in attempt.trials.order_by("number")[:2]:
        solo.report(attempt, begun(trial), ended(trial, "out of luck"))
    pipeline.advance_all()
    assert attempts.renew(solo.row.pk, [attempt.pk]) == {attempt.pk: "stopped"}
    attempt_end.finish(attempt.pk, Outcome.STOPPED)
    pipeline.advance_all()
    job = Job.objects.get(pk=attempt.job_id)
    assert (job.state, present(job.error)["code"]) == ("failed", "trials_keep_failing")
    assert set(states(attempt)[2:]) == {"stopped"}
