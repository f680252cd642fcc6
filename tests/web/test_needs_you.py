"""The list "Needs you" of the home page has only entries that still need the person."""

from datetime import timedelta

import pytest
from django.utils import timezone

from jobs.models import ApiToken, DatasetVersion, Experiment, Job, ModelVersion, PromotionRequest
from jobs.queries.home import approvals_to_decide, home_page
from tests.factories import make_code, make_dataset, make_experiment, make_job, make_model, make_promotion
from tests.people import People, browser_of

pytestmark = pytest.mark.django_db


def failed(people: People, kind: str = "search", **fields: object) -> Job:
    return make_job(by=people.owner, project=people.project, kind=kind, state="failed", **fields)  # type: ignore[arg-type]


def needed(people: People) -> list[Job]:
    return home_page(people.owner).failures


@pytest.fixture
def experiment(people: People) -> Experiment:
    return make_experiment(project=people.project, by=people.owner)


@pytest.mark.parametrize("state", ["queued", "running", "completed", "stopped"])
def test_a_failed_job_whose_experiment_runs_again_is_left_out(
    people: People, experiment: Experiment, state: str
) -> None:
    first = failed(people, experiment=experiment)
    assert needed(people) == [first]
    make_job(by=people.member, experiment=experiment, state=state)
    assert needed(people) == []


def test_of_an_experiment_that_failed_twice_the_newest_job_is_listed(
    people: People, experiment: Experiment
) -> None:
    failed(people, experiment=experiment)
    second = failed(people, experiment=experiment)
    assert needed(people) == [second]


def test_a_failure_of_somebody_else_repairs_nothing(people: People, experiment: Experiment) -> None:
    mine = failed(people, experiment=experiment)
    make_job(by=people.member, experiment=experiment, state="failed")
    assert needed(people) == [mine]


def test_an_ensemble_from_a_failed_search_does_not_repair_it(people: People, experiment: Experiment) -> None:
    search = failed(people, experiment=experiment)
    chosen = {"search": search.pk, "chosen": []}
    make_job(
        by=people.owner, experiment=experiment, kind="chosen_ensemble", state="completed", payload=chosen
    )
    assert needed(people) == [search]


def test_a_job_of_an_archived_experiment_is_left_out(people: People, experiment: Experiment) -> None:
    failed(people, experiment=experiment)
    Experiment.objects.update(archived=True)
    assert needed(people) == []


def test_a_profile_is_left_out_once_a_version_follows_that_decides_its_finding(people: People) -> None:
    dataset = make_dataset(project=people.project, by=people.owner)
    refused = dataset.versions.get()
    dataset.versions.update(state=DatasetVersion.State.FAILED)
    profile = failed(people, "profile", payload={"dataset_version": refused.pk})
    assert needed(people) == [profile]
    DatasetVersion.objects.create(dataset=dataset, number=2, created_by=people.owner)
    assert needed(people) == []


def test_a_profile_is_left_out_once_its_version_is_read_again(people: People) -> None:
    version = make_dataset(project=people.project, by=people.owner).versions.get()
    failed(people, "profile", payload={"dataset_version": version.pk})
    assert version.state == DatasetVersion.State.READY
    assert needed(people) == []


def test_a_validation_is_left_out_once_a_newer_version_is_registered(people: People) -> None:
    model = make_model(project=people.project, by=people.owner, versions=2)
    last = model.versions.get(number=2)
    model.versions.update(state=ModelVersion.State.INVALID)
    validations = {
        version.number: failed(people, "register", payload={"version": version.pk})
        for version in model.versions.all()
    }
    assert needed(people) == [validations[last.number]]


@pytest.mark.parametrize("state", ["rejected", "withdrawn", "released", "expired"])
def test_the_gates_of_a_request_that_was_decided_are_left_out(people: People, state: str) -> None:
    version = make_model(project=people.project, by=people.owner).versions.get()
    request = make_promotion(version, by=people.owner, state="failed")
    gates = failed(people, "gate", payload={"promotion": request.pk})
    assert needed(people) == [gates]
    PromotionRequest.objects.update(state=state)
    assert needed(people) == []


def test_gates_are_left_out_once_the_promotion_is_requested_again(people: People) -> None:
    version = make_model(project=people.project, by=people.owner).versions.get()
    request = make_promotion(version, by=people.owner, state="failed")
    failed(people, "gate", payload={"promotion": request.pk})
    make_promotion(version, by=people.owner)
    assert needed(people) == []


def test_an_installation_is_left_out_once_it_was_repeated_or_the_code_has_a_newer_version(
    people: People,
) -> None:
    code = make_code("mlp", project=people.project, by=people.owner)
    payload = {"code": code.digest, "requirements": "a" * 64, "for_engine": True}
    install = failed(people, "install", payload=payload)
    assert needed(people) == [install]
    again = make_job(
        by=people.owner, project=people.project, kind="install", state="running", payload=payload
    )
    assert needed(people) == []
    again.delete()
    make_code("mlp", project=people.project, by=people.owner)
    assert needed(people) == []


def test_a_request_past_its_expiry_is_left_out_before_the_scheduler_closes_it(people: People) -> None:
    version = make_model(project=people.project, by=people.owner).versions.get()
    make_promotion(version, by=people.owner)
    assert approvals_to_decide(people.approver).count() == 1
    PromotionRequest.objects.update(expires=timezone.now() - timedelta(minutes=1))
    assert approvals_to_decide(people.approver).count() == 0


def test_a_token_that_another_one_with_its_name_outlives_is_left_out(people: People) -> None:
    soon = timezone.now() + timedelta(days=2)
    make = ApiToken.objects.create
    old = make(user=people.owner, name="ci", prefix="a", digest="a", expires=soon)
    make(user=people.owner, name="", prefix="b", digest="b", expires=soon + timedelta(days=1))
    assert old in home_page(people.owner).expiring
    make(user=people.owner, name="ci", prefix="c", digest="c", expires=None)
    assert [token.prefix for token in home_page(people.owner).expiring] == ["b"]


def test_the_message_of_a_failure_is_shown_without_names_of_rest(
    people: People, experiment: Experiment
) -> None:
    job = failed(people, experiment=experiment)
    job.error = {"code": "bad_input", "message": "use another seed (fit.seed)"}
    job.save(update_fields=["error"])
    page = browser_of(people.owner).get("/").content.decode()
    assert "Use another seed" in page
    assert "fit.seed" not in page
