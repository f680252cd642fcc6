"""Changes of a running search: its budget, its parallelism, and a narrower space."""

from typing import Any

import pytest

from jobs.actions.runs import control, pipeline, schedule
from jobs.actions.search import search_changes, suggest, trials
from jobs.errors import BadInput, Conflict, NotFound, StaleFence, StaleState
from jobs.messages.suggest import Answer, Suggestion, SuggestRequest
from jobs.models import AuditEvent, Job, Trial, User
from jobs.queries.runs import events
from jobs.queries.search import outcomes
from tests.jobs.search.test_trial_continues import keep
from tests.jobs.yard import SEARCH, PretendWorker, Yard, placed_search, until_final

RANDOM = {**SEARCH, "algorithm": "random", "max_trials": 8}
NARROW = {"space": [{"name": "units", "max": 32}]}


def random_search(installation: Yard, *units: int) -> Job:
    """Return a search whose algorithm has created these trials; none has begun."""
    job = installation.submit(search=RANDOM)
    pipeline.advance_all()
    claimed = suggest.claim_request(job.pk)
    assert claimed is not None
    suggest.add_suggestions(
        claimed, Answer(suggestions=tuple(Suggestion(values={"units": n}) for n in units))
    )
    return job


def refused(job: Job, sent: dict[str, Any], by: User) -> str:
    with pytest.raises(BadInput) as caught:
        search_changes.revise_search(job, sent, by=by)
    return caught.value.problems[0].pointer


def test_a_revised_search_has_a_new_revision_with_its_budget(
    installation: Yard, worker: PretendWorker
) -> None:
    job, _ = placed_search(installation, worker)
    old = job.revision
    new = search_changes.revise_search(
        job, {"max_trials": 2, "parallel_trials": 1}, by=installation.owner, comment="dear enough"
    )
    assert old is not None and (new.number, new.reason, new.created_by) == (
        2,
        "dear enough",
        installation.owner,
    )
    assert new.experiment == old.experiment and new.digest == new.spec.digest() != old.digest
    assert new.spec.search is not None and new.spec.search.max_trials == 2
    (revised,) = [event for event in events.read_events(job.pk, after=0).items if event["type"] == "revised"]
    assert revised["revision"] == 2 and "Trials, at most: 2, previously 4" in revised["changes"]
    row = AuditEvent.objects.get(action="job.revise")
    assert (row.actor, row.detail["before"], row.detail["revision"]) == (installation.owner, 1, 2)


def test_of_two_revisions_based_on_the_same_one_only_the_first_is_accepted(
    installation: Yard, worker: PretendWorker
) -> None:
    job, _ = placed_search(installation, worker)
    search_changes.revise_search(job, {"max_trials": 9}, by=installation.owner, seen=1)
    with pytest.raises(StaleState, match="is at revision 2, not 1"):
        search_changes.revise_search(job, {"max_trials": 7}, by=installation.owner, seen=1)
    assert outcomes.trials_planned(Job.objects.get(pk=job.pk)) == 4, "a grid of four has no more"
    assert Job.objects.get(pk=job.pk).revision.spec.search.max_trials == 9  # type: ignore[union-attr]


def test_trials_outside_the_narrowed_space_that_have_not_begun_are_withdrawn(
    installation: Yard, worker: PretendWorker
) -> None:
    job = random_search(installation, 16, 64, 48, 32)
    by_hand = trials.queue_by_hand(job, {"units": 64}, by=installation.owner)
    schedule.place_jobs()  # two slots: 16 and 64 are held by now
    search_changes.revise_search(job, NARROW, by=installation.owner)
    rows = {trial.number: trial for trial in job.trials.all()}
    assert [rows[number].state for number in (1, 2, 4)] == ["queued"] * 3, (
        "trials that are held or inside the space continue"
    )
    assert (rows[3].state, rows[3].source) == ("stopped", "withdrawn")
    assert rows[3].error is not None and "outside the new space" in rows[3].error["message"]
    assert rows[by_hand.number].state == "queued", "a user queued this one"


def test_a_withdrawn_trial_uses_no_budget_and_is_not_retried_with_the_job(
    installation: Yard, worker: PretendWorker
) -> None:
    job = random_search(installation, 64, 48)
    search_changes.revise_search(job, {**NARROW, "max_trials": 1}, by=installation.owner)
    claimed = suggest.claim_request(job.pk)
    assert claimed is not None and claimed.request["count"] == 1
    control.stop(Job.objects.get(pk=job.pk), by=installation.owner)
    with pytest.raises(StaleState, match="nothing"):
        Job.objects.filter(pk=job.pk).update(state="completed")
        control.retry(Job.objects.get(pk=job.pk), by=installation.owner)
    assert set(job.trials.values_list("state", flat=True)) == {"stopped"}


def test_suggestions_for_the_old_space_are_dropped(installation: Yard, worker: PretendWorker) -> None:
    job = random_search(installation, 16)
    claimed = suggest.claim_request(job.pk)
    assert claimed is not None
    search_changes.revise_search(job, NARROW, by=installation.owner)
    with pytest.raises(StaleFence):
        suggest.add_suggestions(claimed, Answer(suggestions=(Suggestion(values={"units": 64}),)))
    again = suggest.claim_request(job.pk)
    assert again is not None, "the lease is released at once"
    request = SuggestRequest.model_validate(again.request)
    assert request.search.space[0].grid() == range(16, 33, 16)


def test_the_algorithm_knows_which_trials_are_outside_the_space(
    installation: Yard, worker: PretendWorker
) -> None:
    job, held = placed_search(installation, worker, algorithm="random", max_trials=8)
    Trial.objects.filter(job=job, number=1).update(values={"units": 64})
    search_changes.revise_search(job, NARROW, by=installation.owner)
    worker.run(held[0])
    claimed = suggest.claim_request(job.pk)
    assert claimed is not None
    assert [row.inside for row in SuggestRequest.model_validate(claimed.request).trials] == [False, True]


def test_a_grid_made_narrower_ends_after_its_last_point(installation: Yard, worker: PretendWorker) -> None:
    job, held = placed_search(installation, worker)  # 16 and 32 are held
    search_changes.revise_search(
        job, {"space": [{"name": "units", "min": 32, "max": 48}]}, by=installation.owner
    )
    job.refresh_from_db()
    assert (job.payload_json["beyond_space"], outcomes.trials_planned(job)) == (1, 3)
    for attempt in held:
        worker.run(attempt)
    pipeline.advance_all()
    claimed = suggest.claim_request(job.pk)
    assert claimed is not None
    suggest.add_suggestions(claimed, Answer(suggestions=(Suggestion(values={"units": 48}),)))
    until_final(worker, job)
    assert job.state == "completed" and job.trials.count() == 3


def test_a_paused_search_can_be_changed_and_resumed(installation: Yard, worker: PretendWorker) -> None:
    job, held = placed_search(installation, worker)
    for attempt in held:
        worker.run(attempt)
    control.pause(Job.objects.get(pk=job.pk), by=installation.owner)
    pipeline.advance_all()
    search_changes.revise_search(Job.objects.get(pk=job.pk), {"max_trials": 3}, by=installation.owner)
    control.resume(Job.objects.get(pk=job.pk), by=installation.owner)
    until_final(worker, job)
    assert (job.state, job.trials.count()) == ("completed", 3)


def test_an_invalid_change_is_refused_with_its_pointer(installation: Yard, worker: PretendWorker) -> None:
    job, _ = placed_search(installation, worker)
    changes: list[tuple[dict[str, Any], str]] = [
        ({"max_trials": 1}, "/search/max_trials"),
        ({"parallel_trials": 0}, "/search/parallel_trials"),
        ({"space": [{"name": "units", "max": 128}]}, "/search/space/0/max"),
        ({"seed": 3}, "/search/seed"),
        ({"max_trials": 4}, "/search"),
        ({}, "/search"),
    ]
    for sent, pointer in changes:
        assert refused(job, sent, installation.owner) == pointer, sent
    assert job.experiment is not None and job.experiment.revisions.count() == 1


def test_a_stopped_search_or_another_job_cannot_be_changed(installation: Yard, worker: PretendWorker) -> None:
    job, _ = placed_search(installation, worker)
    control.stop(job, by=installation.owner)
    with pytest.raises(StaleState, match="can no longer be changed"):
        search_changes.revise_search(job, {"max_trials": 9}, by=installation.owner)
    with pytest.raises(Conflict, match="not a search"):
        search_changes.revise_search(installation.submit(), {"max_trials": 9}, by=installation.owner)
    with pytest.raises(NotFound):
        search_changes.revise_search(job, {"max_trials": 9}, by=User.objects.create(username="sam"))


def test_an_exhausted_search_creates_more_trials_with_a_larger_budget(
    installation: Yard, worker: PretendWorker
) -> None:
    job, held = placed_search(installation, worker, max_trials=2)
    Job.objects.filter(pk=job.pk).update(payload_json=job.payload_json | {"exhausted": True})
    search_changes.revise_search(job, {"max_trials": 4}, by=installation.owner)
    for attempt in held:
        worker.run(attempt)
    assert until_final(worker, job).trials.count() == 4


def test_a_change_of_a_final_search_is_not_previewed(installation: Yard) -> None:
    job = installation.submit(search=RANDOM)
    Job.objects.filter(pk=job.pk).update(state="completed")
    with pytest.raises(StaleState, match="accepts no more trials"):
        search_changes.preview_change(Job.objects.get(pk=job.pk), {"max_trials": 9})


def test_unknown_fields_are_reported_in_alphabetical_order(installation: Yard) -> None:
    job = installation.submit(search=RANDOM)
    with pytest.raises(BadInput) as caught:
        search_changes.preview_change(job, dict.fromkeys(["seed", "algorithm", "objective"], 1))
    assert [one.pointer for one in caught.value.problems] == [
        "/search/algorithm",
        "/search/objective",
        "/search/seed",
    ]


def test_a_queued_trial_that_has_trained_is_not_withdrawn(installation: Yard, worker: PretendWorker) -> None:
    job = random_search(installation, 64, 64, 64, 64, 48)
    promoted, at_rung, continued, trained, fresh = job.trials.order_by("number")
    Trial.objects.filter(pk=promoted.pk).update(rung=1, rungs=[0.5])
    Trial.objects.filter(pk=at_rung.pk).update(rungs=[0.5], state="paused")
    keep(continued, 1)
    trained.executions.filter(number=1).update(epochs=2)
    assert search_changes.preview_change(job, NARROW).withdrawn == [fresh]


def test_an_empty_answer_for_the_old_search_is_discarded(installation: Yard, worker: PretendWorker) -> None:
    job = random_search(installation, 16)
    claimed = suggest.claim_request(job.pk)
    assert claimed is not None
    suggest.add_suggestions(claimed, Answer())
    assert "nothing_for" in Job.objects.get(pk=job.pk).payload_json
    search_changes.revise_search(job, NARROW, by=installation.owner)
    assert "nothing_for" not in Job.objects.get(pk=job.pk).payload_json


def test_a_withdrawn_trial_is_neither_retried_nor_continued(
    installation: Yard, worker: PretendWorker
) -> None:
    job = random_search(installation, 64, 48)
    search_changes.revise_search(job, NARROW, by=installation.owner)
    trial = job.trials.get(number=1)
    for again in (trials.retry, trials.continue_training):
        with pytest.raises(StaleState, match="outside the search's current space"):
            again(trial, by=installation.owner)
