"""A hyperparameter that a trial asks for and that the space lacks is added to the running search."""

import time
from typing import Any

import pytest

from jobs.actions.runs import attempt_end, control, pipeline, schedule
from jobs.actions.search import search_changes, suggest, trials
from jobs.errors import BadInput, StaleFence
from jobs.messages.events import Declared
from jobs.messages.suggest import Answer, Suggestion, SuggestRequest
from jobs.models import Attempt, Experiment, Job, Trial
from jobs.queries.runs import events
from jobs.queries.search import exports, importance, outcomes
from jobs.queries.search.algorithm_state import algorithm_state
from jobs.queries.search.trial_columns import read_columns
from jobs.spec.algorithms import ALGORITHMS
from jobs.spec.space.search_space import Space, check_values
from jobs.states import Outcome
from tests.jobs.runs.test_attempts import expire
from tests.jobs.yard import SEARCH, PretendWorker, Yard, begun, ended, placed_search, until_final
from workers.engine.search.suggest import suggest as suggested

DROPOUT = {"name": "dropout", "kind": "float", "min": 0.0, "max": 0.5, "step": 0.25}
LAYERS = {"name": "layers", "kind": "int", "min": 1, "max": 3, "when": {"name": "units", "in": [64]}}
RANDOM = {"algorithm": "random", "max_trials": 8}


def declared(
    trial: Trial, *rows: dict[str, Any], refused: dict[str, str] | None = None, **values: Any
) -> Declared:
    body = {"time": time.time(), "trial": trial.number, "rows": rows, "values": values}
    return Declared.model_validate(body | {"refused": refused or {}})


def first_of(attempt: Attempt) -> Trial:
    return attempt.trials.order_by("number")[0]


def grown(
    installation: Yard, worker: PretendWorker, *rows: dict[str, Any], **search: Any
) -> tuple[Job, list[Attempt]]:
    """Return a search in which the first trial has declared these, and the attempts that hold its trials."""
    job, held = placed_search(installation, worker, **{**RANDOM, **search})
    trial = first_of(held[0])
    values: dict[str, Any] = {"dropout": 0.0} if DROPOUT in rows else {}
    worker.report(held[0], begun(trial), declared(trial, *rows, **values))
    job.refresh_from_db()
    return job, held


def names(space: Space) -> list[str]:
    return [row.name for row in space]


def request_of(job: Job) -> SuggestRequest:
    claimed = suggest.claim_request(job.pk)
    assert claimed is not None
    return SuggestRequest.model_validate(claimed.request)


def warnings_of(job: Job) -> list[str]:
    job.refresh_from_db()
    return [warning["message"] for warning in job.warnings]


def test_the_next_suggestions_are_for_the_larger_space(installation: Yard, worker: PretendWorker) -> None:
    job, held = grown(installation, worker, DROPOUT)
    assert names(outcomes.search_of(job).space) == ["units", "dropout"]
    for attempt in held:
        worker.run(attempt)
    request = request_of(job)
    assert names(request.search.space) == ["units", "dropout"]
    assert [row.values["dropout"] for row in request.trials] == [0.0] * len(request.trials), (
        "earlier trials have trained with the default"
    )
    assert set(suggested(request).suggestions[0].values) == {"units", "dropout"}
    assert (job.revision.number, Experiment.objects.get().revisions.count()) == (1, 1)  # type: ignore[union-attr]


def test_a_trial_has_the_value_with_which_it_trains_and_others_have_none(
    installation: Yard, worker: PretendWorker
) -> None:
    job, held = grown(installation, worker, DROPOUT)
    first, second = job.trials.order_by("number")[:2]
    assert first.values == {"units": first.values["units"], "dropout": 0.0}
    assert first.values_digest == suggest.values_digest(first.values)
    assert "dropout" not in second.values, "its code has not asked for it yet"
    worker.report(held[1], begun(second), declared(second, DROPOUT, dropout=0.0))
    second.refresh_from_db()
    assert second.values["dropout"] == 0.0
    assert [one.trial for one in algorithm_state(job).found] == [1], "the first trial has found it"


def test_a_declaration_that_is_repeated_after_a_kill_changes_nothing(
    installation: Yard, worker: PretendWorker
) -> None:
    job, held = grown(installation, worker, DROPOUT)
    before, trial = job.payload_json, first_of(held[0])
    expire(held[0])
    attempt_end.reap()
    with pytest.raises(StaleFence):
        worker.report(held[0], declared(trial, LAYERS))
    schedule.place_jobs()
    (again,) = (attempt for attempt in worker.claim_all() if attempt.trials.filter(pk=trial.pk).exists())
    worker.report(again, begun(trial), declared(trial, DROPOUT, dropout=0.0), ended(trial))
    job.refresh_from_db()
    assert job.payload_json == before
    assert sum(event["type"] == "revised" for event in events.read_events(job.pk, after=0).items) == 1


def test_suggestions_for_the_smaller_space_are_dropped(installation: Yard, worker: PretendWorker) -> None:
    job, held = placed_search(installation, worker, **RANDOM, parallel_trials=3)
    worker.run(held[1])
    claimed = suggest.claim_request(job.pk)
    assert claimed is not None
    trial = first_of(held[0])
    worker.report(held[0], begun(trial), declared(trial, DROPOUT, dropout=0.0))
    with pytest.raises(StaleFence):
        suggest.add_suggestions(claimed, Answer(suggestions=(Suggestion(values={"units": 16}),)))
    assert suggest.claim_request(job.pk) is not None, "the lease is released at once"


def test_trials_that_have_not_begun_are_chosen_again(installation: Yard, worker: PretendWorker) -> None:
    job = installation.submit(search=SEARCH | RANDOM)
    pipeline.advance_all()
    claimed = suggest.claim_request(job.pk)
    assert claimed is not None
    chosen = tuple(Suggestion(values={"units": units}) for units in (16, 32, 48, 64))
    suggest.add_suggestions(claimed, Answer(suggestions=chosen))
    by_hand = trials.queue_by_hand(job, {"units": 64}, by=installation.owner)
    schedule.place_jobs()
    held = worker.claim_all()
    worker.report(held[0], declared(first_of(held[0]), DROPOUT, dropout=0.0))
    sources = dict(job.trials.values_list("number", "source"))
    assert sources == {1: "algorithm", 2: "algorithm", 3: "withdrawn", 4: "withdrawn", 5: "hand"}
    assert job.trials.get(number=3).error["message"].startswith("the space grew before this trial began")  # type: ignore[index]
    assert by_hand.number == 5
    job.refresh_from_db()
    assert outcomes.trials_planned(job) == 8, "withdrawn trials use no budget"


@pytest.mark.parametrize("algorithm", sorted(ALGORITHMS))
def test_every_algorithm_searches_what_was_found(
    installation: Yard, worker: PretendWorker, algorithm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KERAS_BACKEND", "jax")  # KerasTuner imports Keras
    job, held = grown(installation, worker, DROPOUT, LAYERS, algorithm=algorithm, max_trials=40)
    for number, attempt in enumerate(held):
        worker.run(attempt, score=0.5 + number / 10)
    request = request_of(job)
    done = request.trials[0].model_copy(update={"state": "completed", "score": 0.5, "rungs": (0.5,)})
    many = tuple(
        done.model_copy(update={"number": n, "score": n / 40, "values": {**done.values, "units": units}})
        for n, units in enumerate((16, 32, 48, 64) * 4, start=1)
        if units != 64
    )
    answer = suggested(request.model_copy(update={"trials": many, "count": 8}))
    new = [suggestion.values for suggestion in answer.suggestions if suggestion.promotes is None]
    assert new
    for values in new:
        assert check_values(request.search.space, values) == values
    assert any(values["dropout"] != 0.0 for values in new)
    assert {"layers" in values for values in new if values["units"] == 64} <= {True}


def test_a_grid_has_more_points_and_the_job_says_so(installation: Yard, worker: PretendWorker) -> None:
    job, held = placed_search(installation, worker, max_trials=10)
    trial = first_of(held[0])
    worker.report(held[0], begun(trial), declared(trial, DROPOUT, dropout=0.0))
    job.refresh_from_db()
    assert outcomes.trials_planned(job) == 10
    (message,) = warnings_of(job)
    assert "the grid has more configurations: 10 trials instead of 4, at most 10" in message
    for attempt in held:
        worker.run(attempt)
    request = request_of(job)
    new = suggested(request.model_copy(update={"count": 20}))
    points = [tuple(s.values.values()) for s in new.suggestions]
    assert len(points) == len(set(points)) == 8 and (16, 0.0) not in points


def test_a_grid_that_would_be_too_large_keeps_its_points(installation: Yard, worker: PretendWorker) -> None:
    fine = {"name": "dropout", "kind": "int", "min": 0, "max": 10**6}
    job, _ = grown(installation, worker, fine, algorithm="grid", max_trials=4)
    assert names(outcomes.search_of(job).space) == ["units"]
    (message,) = warnings_of(job)
    assert "Trial 1 asks for 'dropout'" in message and "the grid has a million configurations" in message
    assert "add a row with this name" in message


def test_what_cannot_be_searched_is_named_once(installation: Yard, worker: PretendWorker) -> None:
    job, held = placed_search(installation, worker, **RANDOM)
    trial = first_of(held[0])
    orphan = {**LAYERS, "when": {"name": "nowhere", "in": [1]}}
    why = {"mode": "values mix types"}
    for _ in range(2):
        worker.report(held[0], declared(trial, orphan, refused=why))
    messages = warnings_of(job)
    assert len(messages) == 2
    assert "'layers' depends on 'nowhere'" in messages[0] and "'mode'" in messages[1]
    assert names(outcomes.search_of(job).space) == ["units"]


def test_a_search_whose_trials_are_all_chosen_says_that_none_tries_it(
    installation: Yard, worker: PretendWorker
) -> None:
    job, held = grown(installation, worker, DROPOUT, max_trials=2)
    (message,) = warnings_of(job)
    assert "all 2 trials of the search were chosen by then" in message and "Raise the number" in message
    for attempt in held:
        worker.run(attempt)
    search_changes.revise_search(job, {"max_trials": 3}, by=installation.owner)
    assert names(request_of(job).search.space) == ["units", "dropout"]


def test_a_search_that_is_paused_keeps_what_was_found(installation: Yard, worker: PretendWorker) -> None:
    job, held = placed_search(installation, worker, **RANDOM)
    control.pause(job, by=installation.owner)
    trial = first_of(held[0])
    worker.report(held[0], begun(trial), declared(trial, DROPOUT, dropout=0.0))
    for attempt in held:
        attempt_end.finish(attempt.pk, Outcome.PAUSED)
    pipeline.advance_all()
    control.resume(Job.objects.get(pk=job.pk), by=installation.owner)
    schedule.place_jobs()
    (again, *_) = worker.claim_all()
    assert first_of(again).values["dropout"] == 0.0
    job.refresh_from_db()
    assert names(outcomes.search_of(job).space) == ["units", "dropout"]


def test_what_was_found_can_be_narrowed_and_queued_by_hand(installation: Yard, worker: PretendWorker) -> None:
    job, held = grown(installation, worker, DROPOUT)
    with pytest.raises(BadInput, match="'dropout' is missing"):
        trials.queue_by_hand(job, {"units": 16}, by=installation.owner)
    trials.queue_by_hand(job, {"units": 16, "dropout": 0.5}, by=installation.owner)
    new = search_changes.revise_search(
        job, {"space": [{"name": "dropout", "min": 0.25}]}, by=installation.owner
    )
    job.refresh_from_db()
    assert new.spec.search is not None and names(new.spec.search.space) == ["units", "dropout"]
    assert names(outcomes.search_of(job).space) == ["units", "dropout"]
    assert outcomes.widest_space(job)[1].takes(0.0), "the charts have the whole range"
    for attempt in held:
        worker.run(attempt)
    assert not any(row.inside for row in request_of(job).trials if row.source == "algorithm"), (
        "those before have its default, which the narrower space excludes"
    )


def test_first_configurations_are_completed_by_defaults(installation: Yard, worker: PretendWorker) -> None:
    job, _ = grown(installation, worker, DROPOUT, start_with=[{"units": 48}])
    assert outcomes.search_of(job).start_with == ({"units": 48, "dropout": 0.0},)


def test_exports_and_charts_have_it(installation: Yard, worker: PretendWorker) -> None:
    job, held = grown(installation, worker, DROPOUT)
    for attempt in held:
        worker.run(attempt)
    header, first, *_ = exports.trial_rows(job)
    assert first[header.index("dropout")] == 0.0
    assert set(read_columns(job)["values"]) == {"units", "dropout"}
    assert "dropout" in importance.scaled_values(outcomes.widest_space(job), [{"units": 16, "dropout": 0.5}])


def test_a_search_that_grew_runs_to_its_end(installation: Yard, worker: PretendWorker) -> None:
    job, held = placed_search(installation, worker)
    trial = first_of(held[0])
    worker.report(held[0], begun(trial), declared(trial, {**DROPOUT, "max": 0.25}, dropout=0.0))
    for attempt in held:
        worker.run(attempt)
    request = request_of(job)
    claimed = suggest.SuggestionClaim(job.pk, Job.objects.get(pk=job.pk).suggest_fence, {})
    suggest.add_suggestions(claimed, suggested(request))
    until_final(worker, job)
    assert (job.state, job.trials.count()) == ("completed", 4)
    assert outcomes.best_trials(job, limit=1).exists()
