"""External searches through the actions: leases, fencing tokens, scores, spaces; no process and no gRPC."""

import math
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from jobs.actions.runs import attempt_end, pipeline, schedule
from jobs.actions.search import external_search, script_reports, suggest
from jobs.actions.search.external_search import HeldTrial, NoTrial
from jobs.errors import BadInput, StaleFence, StaleState
from jobs.models import Attempt, Job, MetricSeries, Worker
from jobs.queries.runs import events as event_log
from jobs.queries.search import outcomes
from jobs.queries.search.external_search import external_payload
from jobs.queries.search.script_reports import TrialName, reported_values
from jobs.spec.external_search import ExternalSearch
from jobs.spec.formats.reading import FormatError
from tests.jobs.yard import let_leases_expire
from tests.people import People
from tests.present import present

FLOAT_X: dict[str, Any] = {
    "class_name": "Float",
    "config": {"name": "x", "min_value": 0.0, "max_value": 1.0, "default": 0.0, "conditions": []},
}
BOOLEAN_Y: dict[str, Any] = {
    "class_name": "Boolean",
    "config": {"name": "y", "default": False, "conditions": []},
}
UNREADABLE: dict[str, Any] = {
    "class_name": "Float",
    "config": {"name": "two words", "min_value": 0.0, "max_value": 1.0, "default": 0.0, "conditions": []},
}


@pytest.fixture
def search(people: People) -> Job:
    let_leases_expire()
    return opened(people)


def opened(people: People, **fields: Any) -> Job:
    asked = ExternalSearch.model_validate({"metric": "val_acc", "direction": "max", "max_trials": 3} | fields)
    return external_search.open_search(people.project, "mine", asked, by=people.member)[0]


def ask(search: Job, script: str = "a") -> HeldTrial:
    """Ask for a trial until there is one, as the chief does with random suggestions."""
    answer = external_search.claim_trial(search.pk, script)
    if answer is NoTrial.SUGGEST:
        question = external_search.suggestion_request(search.pk)
        assert question is not None
        external_search.add_suggestion(search.pk, question, {"x": question.trial_count / 10})
        answer = external_search.claim_trial(search.pk, script)
    assert isinstance(answer, HeldTrial), answer
    return answer


def name(held: HeldTrial) -> TrialName:
    return TrialName(held.trial.number, held.attempt.number)


def finish(search: Job, held: HeldTrial, score: float = 0.5, *entries: dict[str, Any], **values: Any) -> None:
    script_reports.record_metrics(search.pk, name(held), {"val_acc": score}, 0)
    space = {"space": list(entries or (FLOAT_X,))}
    script_reports.end_trial(search.pk, name(held), done=True, space=space, values={"x": 0.0} | values)


def discovered(search: Job) -> Job:
    finish(search, ask(search))
    search.refresh_from_db()
    return search


def expire_lease(held: HeldTrial) -> None:
    Attempt.objects.filter(pk=held.attempt.pk).update(lease_until=timezone.now() - timedelta(seconds=1))


def state_of(held: HeldTrial) -> str:
    held.trial.refresh_from_db()
    return held.trial.state


def test_a_script_that_asks_twice_gets_the_same_trial(search: Job) -> None:
    first, again = ask(search), ask(search)
    assert (first.trial, first.attempt) == (again.trial, again.attempt)


def test_until_the_space_is_known_only_one_script_gets_a_trial(search: Job) -> None:
    assert ask(search, "a").trial.values == {}
    assert external_search.claim_trial(search.pk, "b") is NoTrial.WAIT
    finish(search, ask(search, "a"))
    assert external_search.claim_trial(search.pk, "b") is NoTrial.SUGGEST


def test_the_first_trial_defines_the_space_and_reports_its_values(search: Job) -> None:
    held = ask(search)
    finish(search, held, 0.5, FLOAT_X, BOOLEAN_Y, y=True)
    held.trial.refresh_from_db()
    assert held.trial.values == {"x": 0.0, "y": True}
    assert [p.name for p in outcomes.search_of(Job.objects.get(pk=search.pk)).space] == ["x", "y"]


def test_a_silent_script_loses_its_trial_to_the_next_with_the_same_number_and_values(search: Job) -> None:
    held = ask(discovered(search), "a")
    expire_lease(held)
    attempt_end.reap(search)
    after = ask(search, "b")
    assert (after.trial.number, after.trial.values) == (held.trial.number, held.trial.values)
    assert after.attempt.number > held.attempt.number


def test_a_late_report_of_the_silent_script_is_refused_and_changes_nothing(search: Job) -> None:
    held = ask(discovered(search), "a")
    expire_lease(held)
    attempt_end.reap(search)
    after = ask(search, "b")
    with pytest.raises(StaleFence, match="no longer assigned to this script"):
        script_reports.record_metrics(search.pk, name(held), {"val_acc": 0.9}, 0)
    with pytest.raises(StaleFence):
        script_reports.end_trial(search.pk, name(held), done=True, space={"space": [FLOAT_X]}, values={})
    assert not MetricSeries.objects.filter(trial=held.trial).exists()
    assert state_of(after) == "running"


def test_every_call_renews_the_lease(search: Job) -> None:
    held = ask(search)
    expire_lease(held)
    script_reports.record_metrics(search.pk, name(held), {"val_acc": 0.1}, 0)
    assert attempt_end.reap(search) == 0


def test_a_trial_that_is_lost_repeatedly_fails(search: Job) -> None:
    search = discovered(search)
    for _ in range(search.max_restarts + 1):
        held = ask(search)
        external_search.release_trial(search.pk, held.attempt.number, "it hung up")
    assert state_of(held) == "failed"


def test_the_scheduler_neither_assigns_its_trials_nor_requests_suggestions(search: Job) -> None:
    held = ask(discovered(search))
    external_search.release_trial(search.pk, held.attempt.number, "it hung up")
    live = timezone.now() + timedelta(hours=1)
    Worker.objects.create(name="w", host="h", pid=1, slots=4, lease_until=live)
    assert schedule.place_jobs() == 0
    pipeline.advance_all()
    search.refresh_from_db()
    assert (suggest.claim_request(search.pk), search.suggest_until) == (None, None)


def test_the_score_is_the_best_steps_mean(search: Job) -> None:
    held = ask(search)
    for step, value in ((0, 0.5), (1, 0.9), (1, 0.7), (2, math.nan)):
        script_reports.record_metrics(search.pk, name(held), {"val_acc": value, "loss": 1.0}, step)
    script_reports.end_trial(search.pk, name(held), done=True, space={"space": [FLOAT_X]}, values={"x": 0.0})
    held.trial.refresh_from_db()
    execution = held.trial.executions.get()
    assert held.trial.score == pytest.approx(0.8)
    assert (execution.best_epoch, execution.epochs) == (2, 3)
    assert execution.metrics == {"val_acc": pytest.approx(0.8), "loss": 1.0}


def test_a_trial_without_a_finite_score_has_failed(search: Job) -> None:
    held = ask(search)
    finish(search, held, math.nan)
    assert state_of(held) == "failed"
    assert present(held.trial.error)["code"] == "no_score"


def test_a_trial_abandoned_by_its_script_fails_and_three_of_them_end_the_search(search: Job) -> None:
    for _ in range(3):
        held = ask(search)
        script_reports.end_trial(search.pk, name(held), done=False, space={"space": [FLOAT_X]}, values={})
        assert state_of(held) == "failed"
    external_search.heartbeat(search.pk)
    pipeline.advance(search)
    search.refresh_from_db()
    assert (search.state, present(search.error)["code"]) == ("failed", "trials_keep_failing")
    assert external_search.claim_trial(search.pk, "a") is NoTrial.OVER


@pytest.mark.parametrize(
    ("metrics", "step"),
    [({"loss": 1.0}, 0), ({"val_acc": 1.0}, -1), ({"val_acc": 1.0, "": 2.0}, 0)]
    + [({"val_acc": 1.0, name: 2.0}, 0) for name in ("a\0b", "__proto__")],
    ids=["no objective", "no step", "no name", "a NUL", "a language's own name"],
)
def test_an_invalid_report_is_refused_completely(search: Job, metrics: dict[str, float], step: int) -> None:
    held = ask(search)
    with pytest.raises(BadInput):
        script_reports.record_metrics(search.pk, name(held), metrics, step)
    assert not reported_values(search.pk, name(held))


def test_an_invalid_first_space_is_refused_with_the_reason(search: Job) -> None:
    held = ask(search)
    script_reports.record_metrics(search.pk, name(held), {"val_acc": 0.5}, 0)
    with pytest.raises(FormatError, match="is not a valid name"):
        script_reports.end_trial(search.pk, name(held), done=True, space={"space": [UNREADABLE]}, values={})
    assert state_of(held) == "failed"
    assert "is not a valid name" in present(held.trial.error)["message"]


def test_later_hyperparameters_extend_the_space_and_invalid_ones_are_logged(search: Job) -> None:
    held = ask(discovered(search))
    finish(search, held, 0.5, FLOAT_X, UNREADABLE, BOOLEAN_Y, y=True)
    search.refresh_from_db()
    assert external_payload(search).search.reported == (("x",), ("y",))
    assert state_of(held) == "completed"
    assert held.trial.values["y"] is True
    warnings = event_log.read_logs(search, level="warning").items
    assert ["'two words' keeps its default" in event["line"] for event in warnings] == [True]


def test_one_line_of_the_log_names_all_hyperparameters_of_a_report_that_are_not_searched(search: Job) -> None:
    def named(number: int) -> dict[str, Any]:
        return UNREADABLE | {"config": UNREADABLE["config"] | {"name": f"no {number}"}}

    held = ask(discovered(search))
    finish(search, held, 0.5, FLOAT_X, *(named(number) for number in range(1000)), BOOLEAN_Y)
    (warning,) = event_log.read_logs(search, level="warning").items
    assert "'no 0', 'no 1', " in warning["line"]
    assert "'no 19', 981 more keep their defaults; the first: " in warning["line"]


def test_an_earlier_trial_counts_with_the_defaults_of_later_hyperparameters(search: Job) -> None:
    held = ask(discovered(search))
    finish(search, held, 0.5, FLOAT_X, BOOLEAN_Y, y=True)
    question = external_search.suggestion_request(search.pk)
    assert question is not None
    assert [row["values"]["y"] for row in question.request["trials"]] == [False, True]


def test_an_outdated_suggestion_is_dropped(search: Job) -> None:
    question = external_search.suggestion_request(discovered(search).pk)
    assert question is not None
    external_search.add_suggestion(search.pk, question, {"x": 0.1})
    with pytest.raises(StaleState):
        external_search.add_suggestion(search.pk, question, {"x": 0.2})
