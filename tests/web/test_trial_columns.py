"""The data behind a search's charts: columns, timeline, importance, downloads."""

from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from django.test import Client
from django.utils import timezone

from jobs.actions.runs import events
from jobs.actions.search import trials
from jobs.actions.transition import move_trial
from jobs.models import Job, Trial
from jobs.queries.runs import events as event_log
from jobs.queries.search import importance, timeline, trial_columns
from jobs.spec.space.search_space import ChoiceParameter, FloatParameter, IntParameter
from jobs.states import TrialState
from tests.factories import SEARCH, make_attempt, make_experiment, make_job, make_trials, make_worker
from tests.people import People, browser_of

SPACE = [
    {"name": "units", "kind": "int", "min": 16, "max": 1024},
    {"name": "learning_rate", "kind": "float", "min": 1e-4, "max": 1e-1, "sampling": "log"},
    {"name": "optimizer", "kind": "choice", "values": ["adam", "sgd"]},
]


@pytest.fixture
def search(people: People) -> Job:
    spec = {**SEARCH, "search": {**SEARCH["search"], "space": SPACE}}
    experiment = make_experiment(project=people.project, by=people.owner, spec=spec)
    job = make_job(experiment=experiment, by=people.owner, state="running")
    for number, trial in enumerate(make_trials(job, 4), start=1):
        trial.values = {"units": 16 * number, "learning_rate": 10.0**-number, "optimizer": "sgd"}
        trial.save(update_fields=["values"])
    return job


@pytest.fixture
def browser(people: People) -> Client:
    return browser_of(people.owner)


def test_trials_are_columns_in_the_order_of_their_numbers(search: Job) -> None:
    read = trial_columns.read_columns(search)
    assert read["number"] == [1, 2, 3, 4]
    assert [read["states"][code] for code in read["state"]] == ["completed"] * 4
    assert read["values"]["units"] == [16, 32, 48, 64]
    assert read["values"]["optimizer"] == [1] * 4
    np.testing.assert_allclose(read["values"]["learning_rate"], [0.1, 0.01, 0.001, 0.0001], rtol=1e-6)
    np.testing.assert_allclose(read["metrics"]["val_loss"], [0.09, 0.08, 0.07, 0.06], rtol=1e-5)
    assert (read["executions"], read["epochs"], read["whole"]) == ([2] * 4, [10] * 4, True)


def test_after_a_cursor_only_changed_trials_are_returned(search: Job, people: People) -> None:
    before = trial_columns.read_columns(search)["cursor"]
    assert trial_columns.read_columns(search, after=before)["number"] == []
    values: dict[str, Any] = {"units": 64, "learning_rate": 0.001, "optimizer": "adam"}
    trials.queue_by_hand(search, values, by=people.owner)
    move_trial(search.trials.get(number=2), TrialState.QUEUED)
    search.refresh_from_db()
    again = trial_columns.read_columns(search, after=before)
    assert (again["number"], again["whole"], again["total"]) == ([2, 5], False, 5)


def test_a_trial_is_returned_that_ended_after_events_with_many_points(
    search: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_log, "POINTS_PER_SLICE", 3)
    search.trials.filter(number=3).update(state="running")
    before = trial_columns.read_columns(search)["cursor"]
    many: dict[str, Any] = {"points": [["loss", x, 0.5, 1.0] for x in range(4)]}
    events.append(search.pk, [events.event("metric", search, **many)] * 2)
    move_trial(search.trials.get(number=3), TrialState.COMPLETED)
    search.refresh_from_db()
    assert trial_columns.read_columns(search, after=before)["number"] == [3]


def test_an_old_cursor_returns_all_trials(search: Job) -> None:
    before = trial_columns.read_columns(search)["cursor"]
    events.append(search.pk, [events.event("progress", search)] * (trial_columns.EVENTS_BEHIND + 1))
    search.refresh_from_db()
    assert trial_columns.read_columns(search, after=before)["whole"]


def test_the_number_of_queries_does_not_depend_on_the_number_of_trials(
    search: Job, browser: Client, django_assert_max_num_queries: Any
) -> None:
    def make(count: int) -> None:
        last = Trial.objects.latest("number").number
        facts: dict[str, Any] = {"values": {}, "state": "completed", "score": 1.0}
        numbers = range(last + 1, last + 1 + count)
        Trial.objects.bulk_create(Trial(job=search, number=n, values_digest=str(n), **facts) for n in numbers)

    make(50)
    for path, most in ((f"/api/v1/jobs/{search.pk}/trials/columns", 14), (f"/jobs/{search.pk}", 45)):
        with django_assert_max_num_queries(most) as few:
            browser.get(path)
        make(300)
        with django_assert_max_num_queries(len(few)):
            browser.get(path)


def test_unchanged_columns_are_304(search: Job, browser: Client) -> None:
    path = f"/api/v1/jobs/{search.pk}/trials/columns"
    first = browser.get(path)
    assert first.json()["number"] == [1, 2, 3, 4]
    assert browser.get(path, headers={"If-None-Match": first["ETag"]}).status_code == 304
    move_trial(search.trials.get(number=1), TrialState.QUEUED)
    assert browser.get(path, headers={"If-None-Match": first["ETag"]}).status_code == 200


@pytest.mark.parametrize("after", ["x", "1", "-1.2", "1.2.3", "9" * 40 + ".1"])
def test_an_invalid_cursor_is_refused(search: Job, browser: Client, after: str) -> None:
    assert browser.get(f"/api/v1/jobs/{search.pk}/trials/columns", {"after": after}).status_code == 422


@pytest.mark.parametrize("what", ["trials/columns", "timeline", "importance", "trials.csv"])
def test_a_job_that_is_not_a_search_is_refused(people: People, browser: Client, what: str) -> None:
    job = make_job(by=people.owner, project=people.project, kind="profile")
    assert browser.get(f"/api/v1/jobs/{job.pk}/{what}").status_code == 409


def test_attempts_that_overlap_on_a_worker_have_lanes_of_their_own(search: Job) -> None:
    search.trials.update(started=timezone.now(), finished=None)
    box = make_worker("box")
    first, second, third = (
        make_attempt(search, box, trial=trial) for trial in search.trials.order_by("number")[:3]
    )
    third.worker = make_worker("annex")
    third.save(update_fields=["worker"])
    first.outcome, first.ended = "lost", timezone.now() + timedelta(seconds=5)
    first.save(update_fields=["outcome", "ended"])
    read = timeline.read_timeline(search, now=timezone.now() + timedelta(seconds=9))
    assert read["workers"] == ["annex", "box"]
    assert (read["trial"], read["worker"], read["lane"]) == ([1, 2, 3], [1, 1, 0], [0, 1, 0])
    assert read["outcome"] == ["lost", "", ""]
    assert second.number == read["attempt"][1]


def test_the_trials_of_one_attempt_follow_each_other_in_its_lane(search: Job) -> None:
    begin = timezone.now()
    attempt = make_attempt(search, make_worker("box"))
    attempt.trials.set(search.trials.all())
    done, second, third, waiting = search.trials.order_by("number")
    search.trials.update(attempt=attempt.number, started=begin, finished=None, state="running")
    done.finished, done.state = begin + timedelta(seconds=4), "pruned"
    second.finished, second.state = begin + timedelta(seconds=7), "completed"
    waiting.started = third.finished = None
    for trial in (done, second, waiting):
        trial.started = None if trial is waiting else begin
        trial.save(update_fields=["started", "finished", "state"])
    read = timeline.read_timeline(search, now=begin + timedelta(seconds=9))
    lengths = [round(end - start) for start, end in zip(read["start"], read["end"], strict=True)]
    assert (read["trial"], read["lane"], lengths) == ([1, 2, 3], [0, 0, 0], [4, 3, 2])
    assert read["outcome"] == ["pruned", "completed", ""]


def test_values_are_scaled_to_0_and_1_by_their_sampling() -> None:
    space = (
        IntParameter(name="units", kind="int", min=16, max=16),
        FloatParameter(name="rate", kind="float", min=1e-4, max=1e-2, sampling="log"),
        ChoiceParameter(name="optimizer", kind="choice", values=("adam", "sgd")),
    )
    unit = importance.scaled_values(space, [{"units": 16, "rate": 1e-3, "optimizer": "adam"}, {"units": 16}])
    assert unit == {"rate": [pytest.approx(0.5), None], "optimizer": [0.25, None]}


@pytest.mark.parametrize("sampling", ["linear", "log", "reverse_log"])
def test_greater_numbers_are_scaled_to_greater_numbers(sampling: Any) -> None:
    rate = FloatParameter(name="rate", kind="float", min=0.1, max=10, sampling=sampling)
    unit = importance.scaled_values((rate,), [{"rate": value} for value in (0.1, 0.5, 9.0, 10.0)])["rate"]
    assert unit == sorted(unit, key=lambda at: -1 if at is None else at)
    assert (unit[0], unit[-1]) == pytest.approx((0, 1))
