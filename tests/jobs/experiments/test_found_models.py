"""The course of a search over several templates: its minutes, ranks and retraining."""

import time
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from jobs.actions.experiments import follow_up
from jobs.actions.runs import attempt_end, attempts, control, pipeline, schedule
from jobs.actions.search import external_search, search_changes, suggest, trials
from jobs.messages import events as contract
from jobs.messages.suggest import Answer, Suggestion
from jobs.models import Attempt, DatasetVersion, Job
from jobs.queries.runs import events as event_log
from jobs.queries.runs import progress
from jobs.queries.search import templates_tried
from jobs.spec.external_search import ExternalSearch
from jobs.spec.plan.find_model import spec_for
from jobs.spec.sections.fit import FitSpec
from jobs.spec.sections.model import TemplateModel
from jobs.states import Desired, Outcome
from tests.jobs.experiments.test_find_model import BUDGET, find_model_job, searched
from tests.jobs.yard import PretendWorker, Yard, begun
from tests.present import present


def running(installation: Yard, worker: PretendWorker, **search: Any) -> tuple[Job, list[Attempt]]:
    """Return a search with a limit of ten minutes and two trials that a worker holds."""
    job = installation.submit(
        search=searched(max_minutes=10, max_trials=40, **search), after={"retrain": {"top": 1}}
    )
    pipeline.advance_all()
    claimed = suggest.claim_request(job.pk)
    assert claimed is not None
    values = ({"template": "mlp", "mlp/units": 8}, {"template": "linear"})
    suggest.add_suggestions(
        claimed, Answer(suggestions=tuple(Suggestion(values=configuration) for configuration in values))
    )
    schedule.place_jobs()
    return job, worker.claim_all()


def start_earlier(job: Job, minutes: float) -> None:
    Job.objects.filter(pk=job.pk).update(started=timezone.now() - timedelta(minutes=minutes))
    job.refresh_from_db()


@pytest.fixture
def two_slots(installation: Yard) -> PretendWorker:
    return PretendWorker(slots=2)


def test_after_its_minutes_a_search_stops_its_trials_and_continues_with_its_steps(
    installation: Yard, two_slots: PretendWorker
) -> None:
    job, (first, second) = running(installation, two_slots)
    two_slots.run(first)
    two_slots.report(second, contract.Started(time=time.time()), begun(second.trials.get()))
    start_earlier(job, 9.5)
    pipeline.advance_all()
    assert not Job.objects.get(pk=job.pk).payload.finishing
    assert progress.progress_of_job(job).fraction > 0.9
    start_earlier(job, 10.5)
    pipeline.advance_all()
    assert Job.objects.get(pk=job.pk).payload.finishing
    assert attempts.renew(two_slots.row.pk, [second.pk]) == {second.pk: Desired.STOPPED}
    assert [
        event["reason"] for event in event_log.read_events(job.pk, after=0).items if event.get("reason")
    ] == ["max_minutes"]


def test_without_a_score_a_search_continues_beyond_its_minutes(
    installation: Yard, two_slots: PretendWorker
) -> None:
    job, (first, _) = running(installation, two_slots)
    start_earlier(job, 11)
    pipeline.advance_all()
    assert not Job.objects.get(pk=job.pk).payload.finishing
    two_slots.run(first)
    pipeline.advance_all()
    assert Job.objects.get(pk=job.pk).payload.finishing


def test_the_minutes_of_a_running_search_can_be_changed(installation: Yard, two_slots: PretendWorker) -> None:
    job, _ = running(installation, two_slots)
    new = search_changes.revise_search(job, {"max_minutes": 20}, by=installation.owner)
    assert new.spec.search is not None
    assert new.spec.search.max_minutes == 20
    (revised,) = [
        event for event in event_log.read_events(job.pk, after=0).items if event["type"] == "revised"
    ]
    assert "Minutes, at most: 20, previously 10" in revised["changes"]


def test_templates_are_ranked_by_their_best_trials(installation: Yard, two_slots: PretendWorker) -> None:
    job, (first, second) = running(installation, two_slots)
    two_slots.run(first, score=0.7)
    two_slots.run(second, score=0.9)
    best, other = templates_tried.template_results(job)
    assert (best.template, best.best_trial, best.completed, best.defaults) == ("linear", 2, 1, None)
    assert (other.template, other.label, other.trials) == ("mlp", "Multilayer perceptron", 1)
    assert best.best is not None and other.best is not None
    assert best.best > other.best


def test_a_search_of_one_template_ranks_none(installation: Yard) -> None:
    one = searched(space=[{"name": "units", "kind": "int", "min": 8, "max": 64}])
    assert templates_tried.template_results(installation.submit(search=one)) == []


def all_templates(installation: Yard) -> Job:
    """Return a search over all templates. A trial of trees is the best."""
    job = find_model_job(installation)
    pipeline.advance_all()
    for trial in job.trials.all():
        trial.state, trial.score = "completed", 0.9 if trial.values["template"] == "trees" else 0.5
        trial.save()
        trial.executions.update(state="completed", score=trial.score, best_epoch=3, epochs=5)
    job.refresh_from_db()
    return job


def test_the_space_of_a_search_with_first_configurations_can_become_smaller(installation: Yard) -> None:
    job = all_templates(installation)
    narrower = {"space": [{"name": "template", "values": ["trees", "linear"]}]}
    new = search_changes.revise_search(job, narrower, by=installation.owner)
    assert new.spec.search is not None
    assert {values["template"] for values in new.spec.search.start_with} == {"trees", "linear"}
    job.refresh_from_db()
    followed = follow_up.queue_narrower_search(job, by=installation.owner)
    assert followed.revision is not None
    assert followed.revision.spec.search is not None
    assert followed.revision.spec.search.start_with == ()


def test_a_trial_of_trees_is_trained_again_without_the_settings_of_networks(installation: Yard) -> None:
    job = all_templates(installation)
    best = job.trials.get(values__template="trees")
    again = trials.retrain(best, by=installation.owner)
    assert again.revision is not None
    model = again.revision.spec.model
    assert isinstance(model, TemplateModel) and model.template == "trees"
    assert job.revision is not None
    assert job.revision.spec.fit.batch_size == 32
    assert again.revision.spec.fit.batch_size == FitSpec().batch_size


def test_trees_are_not_tried_on_large_images(installation: Yard) -> None:
    changed = {"kind": "image", "input_shape": [224, 224, 3]}
    DatasetVersion.objects.update(profile_json=present(installation.dataset.profile_json) | changed)
    version = DatasetVersion.objects.get()
    assert version.profile is not None
    names = spec_for("flowers", 1, version.profile, BUDGET)["search"]["space"][0]["values"]
    assert "trees" not in names
    assert "resnet" in names


def test_a_retried_search_has_its_minutes_again(installation: Yard, two_slots: PretendWorker) -> None:
    job, (first, second) = running(installation, two_slots)
    two_slots.run(first)
    attempt_end.finish(second.pk, Outcome.FAILED, error={"code": "x", "message": "out of luck"})
    Job.objects.filter(pk=job.pk).update(state="failed", started=timezone.now() - timedelta(minutes=60))
    job.refresh_from_db()
    control.retry(job, by=installation.owner)
    pipeline.advance_all()
    job.refresh_from_db()
    assert not job.payload.finishing
    assert job.trials.filter(state="queued").exists()


def test_a_script_may_have_a_hyperparameter_named_template(installation: Yard) -> None:
    space = [{"name": "template", "kind": "choice", "values": ["small", "large"]}]
    asked = ExternalSearch.model_validate({"space": space})
    job, _ = external_search.open_search(installation.project, "mine", asked, by=installation.owner)
    assert templates_tried.template_results(job) == []
