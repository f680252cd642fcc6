"""Ensembles of chosen trials, which are retrained and pooled in a separate job."""

import pytest

from jobs.actions.runs import pipeline, submit
from jobs.actions.search import ensembles
from jobs.errors import BadInput, Conflict
from jobs.models import Job
from jobs.queries.runs import jobs as job_queries
from jobs.queries.runs import steps
from tests.jobs.yard import SEARCH, PretendWorker, Yard, turn


@pytest.fixture
def search(installation: Yard) -> Job:
    job = installation.submit(search=SEARCH)
    for number in range(1, 5):
        facts = {
            "values": {"units": 16 * number},
            "values_digest": str(number),
            "score": 0.9,
            "state": "completed",
        }
        job.trials.create(number=number, **facts)
    Job.objects.filter(pk=job.pk).update(state="completed")
    job.refresh_from_db()
    return job


def test_chosen_trials_are_retrained_and_pooled_beside_their_search(
    installation: Yard, worker: PretendWorker, search: Job
) -> None:
    job = ensembles.queue_ensemble(search, [4, 2, 4], by=installation.owner)
    pipeline.advance_all()
    assert [(step.kind, step.state) for step in job_queries.steps_out(job)] == [
        ("train", "queued"),
        ("train", "queued"),
        ("ensemble", None),
    ]
    order = [a.job.kind for _ in range(4) for a in turn(worker, job)]
    assert (job.state, order) == ("completed", ["train", "train", "ensemble"])
    trained = job.children.filter(kind="train").order_by("ordinal")
    assert [(c.payload_json["trial"], c.payload_json["values"]["units"]) for c in trained] == [
        (2, 32),
        (4, 64),
    ]
    assert job.results_json["candidates"].keys() == {"best", "ensemble"}
    assert not search.children.exists()


def test_its_members_are_retrained_and_pooled_with_the_options_of_the_spec_or_defaults(
    installation: Yard, search: Job
) -> None:
    job = ensembles.queue_ensemble(search, [1, 2, 3], by=installation.owner)
    after = steps.effective_spec(job).after
    assert after.retrain is not None and after.ensemble is not None
    assert (after.retrain.top, after.retrain.include_validation, after.ensemble.method) == (
        3,
        True,
        "weighted",
    )
    changed = {"retrain": {"top": 2, "patience": 4}, "ensemble": {"method": "mean"}, "quantize": {}}
    job.revision = installation.revision(search=SEARCH, after=changed)
    after = steps.effective_spec(job).after
    assert after.retrain is not None and after.ensemble is not None
    assert (after.retrain.top, after.retrain.patience, after.ensemble.method) == (3, 4, "mean")
    assert after.quantize is None


def test_it_runs_again_with_the_same_trials(installation: Yard, search: Job) -> None:
    job = ensembles.queue_ensemble(search, [1, 3], by=installation.owner)
    again = submit.clone(job, by=installation.owner)
    assert (again.public_kind, again.title) == ("ensemble", "Ensemble of trials 1, 3")
    assert again.payload == job.payload


def test_a_clone_runs_the_same_even_if_its_search_has_changed(installation: Yard, search: Job) -> None:
    job = ensembles.queue_ensemble(search, [1, 3], by=installation.owner)
    changed = {"pool": "large", "priority": 90, "slots": 2, "max_restarts": 1}
    Job.objects.filter(pk=job.pk).update(**changed)
    Job.objects.filter(pk=search.pk).update(revision=installation.revision(search={**SEARCH, "seed": 7}))
    search.trials.all().delete()
    job.refresh_from_db()
    again = submit.clone(job, by=installation.owner)
    assert (again.revision, again.payload) == (job.revision, job.payload)
    assert {name: getattr(again, name) for name in changed} == changed


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ([2, 2], "an ensemble needs 2 to 100 different trials; 1 given"),
        ([1, 99], "has no trial 99"),
        ([1, 4], "trial 4 is failed and has no score"),
        ([1, 3], "trial 3 has failed; its score is from before the failure"),
        ([1, 2], "trials 1 and 2 have the same values"),
    ],
)
def test_trials_that_cannot_be_members_are_refused(
    installation: Yard, search: Job, numbers: list[int], message: str
) -> None:
    search.trials.filter(number__in=(3, 4)).update(state="failed")
    search.trials.filter(number=4).update(score=None)
    search.trials.filter(number=2).update(values_digest=search.trials.get(number=1).values_digest)
    with pytest.raises(BadInput, match=message) as refusal:
        ensembles.queue_ensemble(search, numbers, by=installation.owner)
    assert [problem.pointer for problem in refusal.value.problems] == ["/trials"]


def test_only_a_search_has_trials_to_choose(installation: Yard, search: Job) -> None:
    job = ensembles.queue_ensemble(search, [1, 2], by=installation.owner)
    with pytest.raises(Conflict, match="not a search"):
        ensembles.queue_ensemble(job, [1, 2], by=installation.owner)
