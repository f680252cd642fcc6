"""Batches, checkpoints and remaining time of searches whose trials wait at rungs."""

import time

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pydantic import ValidationError

from jobs import clock
from jobs.actions.runs import attempt_end, control, pipeline, schedule
from jobs.actions.search import rung_promotion, suggest, trials
from jobs.actions.storage import retention
from jobs.messages import events as contract
from jobs.messages.suggest import Suggestion, TrialRow
from jobs.models import Attempt, Checkpoint, Job, Trial
from jobs.queries.runs import progress
from jobs.queries.search import outcomes, waiting
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.problems import problems
from jobs.states import Outcome
from tests.jobs.search.test_rung_promotion import CLIMB, FIT, Climber, at_first_rung, climb
from tests.jobs.yard import Yard, begun, spec


@pytest.fixture
def climber(installation: Yard) -> Climber:
    return Climber(slots=4)


def test_stopping_a_search_stops_waiting_trials_and_a_retry_continues_them(
    installation: Yard, climber: Climber
) -> None:
    job, trial = at_first_rung(installation, climber)
    control.stop(job, by=installation.owner)
    for attempt in Attempt.objects.exclude(state="ended"):
        attempt_end.finish(attempt.pk, Outcome.STOPPED)
    pipeline.advance_all()
    trial.refresh_from_db()
    job.refresh_from_db()
    assert (job.state, trial.state) == ("stopped", "stopped")
    assert job.results_json["best_trial"]["number"] == trial.number, "its score at the rung counts"
    control.retry(Job.objects.get(pk=job.pk), by=installation.owner)
    assert climb(climber, job).state == "completed"


def test_checkpoints_of_waiting_trials_are_kept_and_those_of_pruned_trials_removed(
    installation: Yard, climber: Climber
) -> None:
    job, trial = at_first_rung(installation, climber)
    other = job.trials.get(number=2)
    for row in (trial, other):
        Checkpoint.objects.create(
            job=job, trial=row, execution=1, attempt=1, step=1, epoch=1, bytes=1,
            folder=f"t{row.pk}", manifest="0" * 64,
        )  # fmt: skip
    Trial.objects.filter(pk=other.pk).update(state="pruned")
    retention.remove_superfluous()
    assert Checkpoint.objects.kept().get().trial_id == trial.pk


def test_the_remaining_time_counts_the_epochs_of_later_rungs(installation: Yard, climber: Climber) -> None:
    job, trial = at_first_rung(installation, climber)
    Trial.objects.filter(pk=trial.pk).update(started=clock.seconds_from_now(-2), finished=clock.now())
    Trial.objects.filter(state="running").update(state="queued", started=None)
    now = progress.progress_of_job(Job.objects.get(pk=job.pk))
    planned = outcomes.search_of(job).epochs_planned(9)
    assert (now.done, now.total, now.unit) == (1, planned, "epochs")
    assert now.eta_seconds == pytest.approx((planned - 1) * 2 / 4, rel=0.05)


def test_a_trial_promoted_while_its_batch_runs_does_not_fail_with_the_batch(
    installation: Yard, climber: Climber
) -> None:
    job, _ = at_first_rung(installation, climber, algorithm="asha", max_trials=40)
    attempt = Attempt.objects.exclude(state="ended").order_by("pk")[0]
    (first,) = attempt.trials.all()
    other = job.trials.filter(attempt=0).first() or suggest.make_trial(
        job, {"learning_rate": 0.05}, source="hand"
    )
    Trial.objects.filter(pk=other.pk).update(attempt=attempt.number)
    attempt.trials.add(other)
    climber.report(attempt, contract.Started(time=time.time()))
    climber.climb(attempt, first)
    promoted = Suggestion(values=first.values, promotes=first.number, rung=1, epochs=3)
    rung_promotion.promote_trial(job, promoted)
    other.refresh_from_db()
    climber.climb(attempt, other)
    attempt_end.finish(attempt.pk, Outcome.COMPLETED)
    first.refresh_from_db()
    assert (first.state, first.rung, first.error) == ("queued", 1, None)


def test_a_paused_batch_resumes_without_the_trials_that_wait_at_a_rung(
    installation: Yard, climber: Climber
) -> None:
    job, first = at_first_rung(installation, climber)
    attempt = Attempt.objects.exclude(state="ended").order_by("pk")[0]
    at_work, later = attempt.trials.get(), suggest.make_trial(job, {"learning_rate": 0.05}, source="hand")
    attempt.trials.add(first, later)
    Trial.objects.filter(pk__in=[first.pk, later.pk]).update(attempt=attempt.number)
    climber.report(attempt, contract.Started(time=time.time()), begun(at_work))
    control.pause(Job.objects.get(pk=job.pk), by=installation.owner)
    for open_one in Attempt.objects.exclude(state="ended"):
        attempt_end.finish(open_one.pk, Outcome.PAUSED)
    pipeline.advance_all()
    job.refresh_from_db()
    assert (job.state, set(job.trials.values_list("state", flat=True))) == ("paused", {"paused"})
    control.resume(job, by=installation.owner)
    states = dict(job.trials.values_list("number", "state"))
    assert states.pop(first.number) == "paused", "it waits for the others there"
    assert set(states.values()) == {"queued"}
    assert climb(climber, job).state == "completed"


def topmost(installation: Yard, climber: Climber) -> tuple[Job, Trial]:
    """Return a running search with rungs and a completed trial of its highest one."""
    job, trial = at_first_rung(installation, climber)
    Trial.objects.filter(pk=trial.pk).update(state="completed", rung=2, epochs=9, rungs=[0.4, 0.3, 0.2])
    trial.executions.update(state="completed", epochs=9, score=0.2)
    Checkpoint.objects.create(
        job=job, trial=trial, execution=1, attempt=1, step=1, epoch=9, bytes=1, folder="t", manifest="0" * 64
    )
    trials.continue_training(trial, 30, by=installation.owner)
    return job, trial


def test_a_continued_trial_never_waits_at_a_rung(installation: Yard, climber: Climber) -> None:
    job, trial = topmost(installation, climber)
    trial.refresh_from_db()
    assert (trial.epochs, trial.until) == (9, 30), "the end of its rung is kept"
    control.pause(Job.objects.get(pk=job.pk), by=installation.owner)
    for attempt in Attempt.objects.exclude(state="ended"):
        attempt_end.finish(attempt.pk, Outcome.PAUSED)
    pipeline.advance_all()
    trial.refresh_from_db()
    assert (trial.state, trial.waits_at_rung) == ("paused", False)
    row = TrialRow(number=1, state="paused", values={}, rung=2, rungs=(0.4, 0.3, 0.2), until=30)
    assert not row.waits() and row.is_pending()
    control.resume(Job.objects.get(pk=job.pk), by=installation.owner)
    trial.refresh_from_db()
    assert trial.state == "queued", "resuming the search queues it again"


def test_the_score_of_a_continued_trial_does_not_count_for_a_rung(
    installation: Yard, climber: Climber
) -> None:
    _, trial = topmost(installation, climber)
    for _ in range(3):
        schedule.place_jobs()
        for attempt in climber.claim_all():
            for held in attempt.trials.all():
                climber.run_trial(attempt, held, score=0.05)
    trial.refresh_from_db()
    assert (trial.state, trial.rungs) == ("completed", [0.4, 0.3, 0.2])
    assert trial.score == pytest.approx(0.06)


def test_a_trial_at_a_rung_is_shown_as_waiting_for_the_others(installation: Yard, climber: Climber) -> None:
    job, trial = at_first_rung(installation, climber)
    with CaptureQueriesContext(connection) as asked:
        assert waiting.waiting_reasons(job)[trial.number] == waiting.AT_RUNG
    assert not [query["sql"] for query in asked if '"values"' in query["sql"]], (
        "a poll of thousands asks this"
    )
    assert len(asked) <= 6, "none is looked up alone"


def test_neither_a_continued_trial_nor_a_removed_bracket_distorts_the_remaining_time(
    installation: Yard, climber: Climber
) -> None:
    job, trial = at_first_rung(installation, climber)
    Trial.objects.filter(pk=trial.pk).update(started=clock.seconds_from_now(-2), finished=clock.now())
    Trial.objects.filter(state="running").update(state="queued", started=None)
    before = progress.progress_of_job(Job.objects.get(pk=job.pk)).eta_seconds
    long = {"state": "completed", "started": clock.seconds_from_now(-9000), "finished": clock.now()}
    Trial.objects.filter(pk=job.trials.get(number=2).pk).update(until=900, epochs=9, **long)
    assert progress.progress_of_job(Job.objects.get(pk=job.pk)).eta_seconds == pytest.approx(before, rel=0.05)
    Trial.objects.filter(pk=trial.pk).update(bracket=7, rung=7)
    assert progress.progress_of_job(Job.objects.get(pk=job.pk)).eta_seconds is not None


@pytest.mark.parametrize("algorithm", ["hyperband", "asha"])
def test_duplicates_are_not_reused_in_a_search_with_rungs(algorithm: str) -> None:
    body = spec(fit=FIT).to_json() | {"search": CLIMB | {"algorithm": algorithm, "duplicates": "answer"}}
    with pytest.raises(ValidationError) as refused:
        ExperimentSpec.model_validate(body)
    (problem,) = problems(refused.value, body)
    assert problem.pointer == "/search/duplicates"
