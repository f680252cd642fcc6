"""How external searches pause, end and fail."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from jobs.actions.runs import attempt_end, control, pipeline
from jobs.actions.search import external_search, script_reports, trials
from jobs.actions.search.external_search import NoTrial
from jobs.errors import BadInput, Conflict, Forbidden
from jobs.models import Attempt, Job, Lease
from jobs.queries.search.script_reports import parse_name
from jobs.spec.external_search import ExternalSearch
from jobs.states import JobState, Outcome
from tests.chief.test_external_search import ask, discovered, finish, name, opened, state_of
from tests.people import People, browser_of
from workers.chief.chief import _advance


@pytest.fixture
def search(people: People) -> Job:
    return opened(people)


def test_it_completes_once_all_its_trials_are_final(search: Job) -> None:
    for score in (0.1, 0.9, 0.5):
        finish(search, ask(search), score)
    pipeline.advance(search)
    search.refresh_from_db()
    assert (search.state, search.results_json["best_trial"]["number"]) == ("completed", 2)
    assert external_search.claim_trial(search.pk, "a") is NoTrial.OVER


def test_scripts_wait_for_the_last_trial_to_take_it_over_if_it_is_lost(people: People) -> None:
    search = discovered(opened(people, max_trials=2))
    ask(search, "a")
    assert external_search.claim_trial(search.pk, "b") is NoTrial.WAIT


def test_a_script_without_hyperparameters_ends_its_search_after_one_trial(search: Job) -> None:
    held = ask(search)
    script_reports.record_metrics(search.pk, name(held), {"val_acc": 0.5}, 0)
    script_reports.end_trial(search.pk, name(held), done=True, space={"space": []}, values={})
    pipeline.advance(search)
    search.refresh_from_db()
    assert search.state == "completed"


def test_without_a_chief_it_waits_with_an_instruction_and_a_new_chief_resumes(people: People) -> None:
    search = opened(people)
    external_search.heartbeat(search.pk)
    Lease.objects.update(until=timezone.now() - timedelta(seconds=1))
    pipeline.advance_all()
    search.refresh_from_db()
    assert (search.state, "manage.py chief --project yard" in search.why_waiting) == ("retrying", True)
    assert opened(people) == search
    assert external_search.heartbeat(search.pk).state == JobState.RUNNING


def test_while_a_script_trains_a_missing_chief_is_not_reported(search: Job) -> None:
    ask(search)
    pipeline.advance_all()
    search.refresh_from_db()
    assert search.state == "running"


def test_killing_a_search_revokes_its_trials(people: People, search: Job) -> None:
    held = ask(search)
    external_search.heartbeat(search.pk)
    control.kill(Job.objects.get(pk=search.pk), by=people.owner)
    pipeline.advance(external_search.heartbeat(search.pk))
    search.refresh_from_db()
    assert (search.state, state_of(held)) == ("stopped", "stopped")


def test_a_finished_search_waits_for_the_trials_that_scripts_hold(people: People, search: Job) -> None:
    discovered(search)
    held = ask(search)
    external_search.heartbeat(search.pk)
    control.finish(Job.objects.get(pk=search.pk), by=people.owner)
    assert external_search.claim_trial(search.pk, "b") is NoTrial.OVER
    pipeline.advance(external_search.heartbeat(search.pk))
    search.refresh_from_db()
    assert (search.state, state_of(held)) == ("running", "running")
    finish(search, held)
    pipeline.advance(external_search.heartbeat(search.pk))
    search.refresh_from_db()
    assert (search.state, search.trials.count()) == ("completed", 2)


def test_a_paused_search_hands_out_no_trial_until_it_is_resumed(people: People, search: Job) -> None:
    search = discovered(search)
    external_search.heartbeat(search.pk)
    control.pause(Job.objects.get(pk=search.pk), by=people.owner)
    assert external_search.claim_trial(search.pk, "a") is NoTrial.WAIT
    control.resume(Job.objects.get(pk=search.pk), by=people.owner)
    assert ask(search).trial.number == 2


def test_a_configuration_queued_by_hand_goes_to_the_next_script(people: People, search: Job) -> None:
    with pytest.raises(Conflict, match="search space is not known yet"):
        trials.queue_by_hand(search, {"x": 0.5}, by=people.member)
    by_hand = trials.queue_by_hand(discovered(search), {"x": 0.5}, by=people.member)
    assert ask(search).trial == by_hand


def test_a_number_beyond_all_floats_is_refused_as_out_of_range(people: People, search: Job) -> None:
    with pytest.raises(BadInput, match="'x' must be float"):
        trials.queue_by_hand(discovered(search), {"x": 10**400}, by=people.member)


def test_an_attempt_that_ends_concurrently_does_not_end_the_chief(
    people: People, search: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask(discovered(search), "a")
    finish_first = attempt_end.finish

    def too_late(attempt: int, outcome: Outcome, **more: Any) -> None:
        finish_first(attempt, Outcome.STOPPED)
        finish_first(attempt, outcome, **more)

    monkeypatch.setattr(attempt_end, "finish", too_late)
    (open_one,) = external_search.open_attempts(search)
    external_search.release_trial(search.pk, open_one.number, "it hung up")
    assert Attempt.objects.get(pk=open_one.pk).outcome == Outcome.STOPPED
    ask(search, "b")
    control.kill(Job.objects.get(pk=search.pk), by=people.owner)
    external_search.heartbeat(search.pk)


def test_an_internal_error_fails_the_search_and_its_chief_continues(
    search: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(pipeline, "trials_keep_failing")
    root = _advance(search.pk, [])
    assert root.state == JobState.FAILED and root.error is not None
    assert "could not advance this job" in root.error["message"]


def test_only_users_who_may_run_jobs_open_one(people: People) -> None:
    with pytest.raises(Forbidden):
        external_search.open_search(people.project, "mine", ExternalSearch(), by=people.viewer)


@pytest.mark.parametrize("text", ["", "7", "7-", "a-b", "7-8-9", "../x", "9" * 40 + "-1"])
def test_an_unknown_trial_name_is_not_found(text: str) -> None:
    with pytest.raises(Exception, match="there is no trial"):
        parse_name(text)


@pytest.mark.parametrize("has_space", [False, True], ids=["no space yet", "a space"])
def test_its_pages_are_shown_with_the_lines_to_copy(people: People, search: Job, has_space: bool) -> None:
    if has_space:
        discovered(search)
    external_search.record_address(search.pk, host="127.0.0.1", port=4242)
    browser = browser_of(people.member)
    page = browser.get(f"/jobs/{search.pk}")
    assert "export KERASTUNER_ORACLE_PORT=4242" in page.content.decode()
    assert "Change…" not in page.content.decode(), "an external search has no experiment to change"
    for tab in ("trials", "charts", "logs", "attempts"):
        assert browser.get(f"/jobs/{search.pk}", {"tab": tab}).status_code == 200
    assert browser.get("/").status_code == 200
    assert browser.get(f"/api/v1/jobs/{search.pk}").json()["kind"] == "search"
    assert browser.get(f"/api/v1/jobs/{search.pk}/trials").status_code == 200
    if has_space:
        assert browser.get(f"/jobs/{search.pk}/trials/1").status_code == 200
