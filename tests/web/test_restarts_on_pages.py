"""Pages show which runs were ended and restarted, with the cause, and a run's phase."""

import itertools
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from jobs.actions.runs import attempts
from jobs.messages import events as contract
from jobs.models import Attempt, Checkpoint, Job, Trial
from tests.factories import (
    make_attempt,
    make_experiment,
    make_job,
    make_worker,
)
from tests.markup import text_of
from tests.people import People

HUNG = {
    "code": "hung",
    "message": "The watchdog ended the run after 60 s without progress; its stacks are in the log.",
}


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (HUNG, "The watchdog ended the run after 60 s without progress; its stacks are in the log."),
        ({"code": "lease_expired", "message": "worker a did not renew its lease"}, "Worker a did not renew"),
        (None, "Its worker was lost."),
    ],
)
def test_a_run_that_was_ended_and_restarted_says_so_with_its_cause(
    browser: Client, people: People, error: Any, cause: str
) -> None:
    experiment = make_experiment(project=people.project, by=people.owner)
    training = make_job(experiment=experiment, by=people.owner, kind="train", state="retrying")
    worker = make_worker()
    lost = make_attempt(training, worker)
    Attempt.objects.filter(pk=lost.pk).update(
        state="ended", outcome="lost", error=error, ended=timezone.now()
    )

    def page_text() -> str:
        return text_of(browser.get(f"/jobs/{training.pk}"))

    assert f"Attempt 1 was ended: {cause}" in page_text()
    assert "It will be restarted from its newest checkpoint." in page_text()
    following = make_attempt(training, worker)
    Attempt.objects.filter(pk=following.pk).update(record={"python": "3"}, resumed_from=115)
    assert "Attempt 2 resumed from step 115." in page_text()
    Checkpoint.objects.create(
        job=training, attempt=1, step=115, epoch=5, folder="a", manifest="0", bytes=1, removed=timezone.now()
    )
    assert "Attempt 2 resumed from epoch 5." in page_text()
    Attempt.objects.filter(pk=following.pk).update(resumed_from=None)
    assert "Attempt 2 began from the start." in page_text()


def test_a_lost_attempt_of_a_search_names_its_trials_and_each_trial_shows_it(
    browser: Client, search: Job
) -> None:
    first, second = search.trials.order_by("number")
    lost = make_attempt(search, make_worker(), trial=first)
    Attempt.objects.filter(pk=lost.pk).update(state="ended", outcome="lost", error=HUNG)
    cause = f"was ended: {HUNG['message']}"
    assert f"Attempt 1 (trial {first.number}) {cause}" in text_of(browser.get(f"/jobs/{search.pk}"))
    assert f"Attempt 1 {cause}" in text_of(browser.get(f"/jobs/{search.pk}/trials/{first.number}"))
    assert cause not in text_of(browser.get(f"/jobs/{search.pk}/trials/{second.number}"))


def test_a_restart_shows_the_digests_of_the_weights_that_were_saved_and_loaded(
    browser: Client, search: Job
) -> None:
    first = search.trials.get(number=1)
    lost = make_attempt(search, make_worker(), trial=first)
    Attempt.objects.filter(pk=lost.pk).update(state="ended", outcome="lost")
    following = make_attempt(search, make_worker(), trial=first)
    resumed = {"trial": 1, "execution": 2, "epoch": 7, "saved": "a" * 64, "loaded": "a" * 64}
    Attempt.objects.filter(pk=following.pk).update(
        record={"python": "3", "resumed": [resumed, resumed | {"trial": 2}]}, resumed_from=70
    )
    same = "Trial 1, execution 2: weights after epoch 7, the same in the checkpoint"
    for address in (f"/jobs/{search.pk}", f"/jobs/{search.pk}/trials/1"):
        page = text_of(browser.get(address))
        assert same in page
        assert "a" * 12 in page
        assert "Trial 2, execution 2" not in page, "another trial's"
    Attempt.objects.filter(pk=following.pk).update(record={"resumed": [resumed | {"loaded": "b" * 64}]})
    page = text_of(browser.get(f"/jobs/{search.pk}"))
    assert (same in page, "not those of the checkpoint" in page) == (False, True)


def test_an_attempt_that_ended_on_request_or_never_ran_is_no_restart(browser: Client, search: Job) -> None:
    worker = make_worker()
    for outcome, error in (
        ("paused", None),
        ("completed", None),
        ("lost", {"code": "unclaimed", "message": ""}),
    ):
        ended = make_attempt(search, worker)
        Attempt.objects.filter(pk=ended.pk).update(state="ended", outcome=outcome, error=error)
    assert "was ended" not in text_of(browser.get(f"/jobs/{search.pk}"))


def test_a_phase_without_progress_is_shown_while_the_task_runs(browser: Client, people: People) -> None:
    experiment = make_experiment(project=people.project, by=people.owner)
    training = make_job(experiment=experiment, by=people.owner, kind="train", state="running")
    Job.objects.filter(pk=training.pk).update(started=timezone.now())
    progress = {"done": 3.5, "total": 5, "unit": "epochs", "phase": "timing"}
    Job.objects.filter(pk=training.pk).update(progress=progress)
    assert "choosing the faster way" in text_of(browser.get(f"/jobs/{training.pk}"))
    Job.objects.filter(pk=training.pk).update(progress={"phase": "compiling"})
    assert "compiling" in text_of(browser.get(f"/jobs/{training.pk}"))
    Job.objects.filter(pk=training.pk).update(state="paused")
    assert "compiling" not in text_of(browser.get(f"/jobs/{training.pk}"))


def test_the_phase_of_a_trial_is_shown_on_its_page_and_on_that_of_its_search(
    browser: Client, search: Job
) -> None:
    search.trials.update(state="running", score=None, finished=None)
    trial = search.trials.get(number=2)
    attempt = make_attempt(search, make_worker(), trial=trial)
    Trial.objects.filter(pk=trial.pk).update(attempt=attempt.number)
    addresses = {n: f"/jobs/{search.pk}/trials/{n}" for n in (1, 2)} | {0: f"/jobs/{search.pk}"}

    positions = itertools.count(1)

    def report(*events: contract.RunnerEvent) -> list[bool]:
        attempts.record_events(attempt.pk, events, spool_position=next(positions), stored={})
        return ["choosing the faster way" in text_of(browser.get(addresses[n])) for n in (0, 1, 2)]

    timing = contract.Phase(time=1, trial=2, name="timing")
    progress = contract.Progress(time=1, trial=2, done=1, total=2, unit="epochs")
    assert report(timing) == [True, False, True]
    assert report(progress) == [False, False, False]
    assert report(progress, timing) == [True, False, True]
    Attempt.objects.update(state="ended")
    assert "choosing the faster way" not in text_of(browser.get(addresses[2]))
