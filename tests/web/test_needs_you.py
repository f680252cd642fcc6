"""The list "Needs you" of the home page has only entries that still need the person."""

from datetime import timedelta

import pytest
from django.utils import timezone

from jobs.models import (
    ApiToken,
    DatasetVersion,
    Decision,
    Dismissal,
    Experiment,
    Job,
    ModelVersion,
    PromotionRequest,
    User,
)
from jobs.queries.dismissals import Thing, need_of
from jobs.queries.home import approvals_to_decide, home_page, needs_of
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


def dismiss(thing: Thing, user: User, **changed: str) -> int:
    """Dismiss a thing as the button on Home does; return the status."""
    need = need_of(thing)
    fields = {"kind": need.kind.value, "row": str(need.row), "state": need.state, **changed}
    return browser_of(user).post("/needs/dismiss", fields, HTTP_REFERER="http://testserver/").status_code


def test_a_dismissed_failure_comes_back_with_a_new_end(people: People) -> None:
    job = failed(people)
    job.finished = timezone.now()
    job.save(update_fields=["finished"])
    # Neither another person's list, nor another kind, row or state.
    dismiss(job, people.member)
    dismiss(job, people.owner, kind="token")
    dismiss(job, people.owner, row=str(job.pk + 1))
    dismiss(job, people.owner, state="another")
    assert (needed(people), Dismissal.objects.count()) == ([job], 0)
    assert dismiss(job, people.owner) == 303
    assert (needed(people), needs_of(people.owner).dismissed) == ([], 1)
    Job.objects.filter(pk=job.pk).update(finished=timezone.now() + timedelta(seconds=1))
    assert needed(people) == [job], "it was tried again and failed again"
    again = failed(people)
    dismiss(Job.objects.get(pk=job.pk), people.owner)
    assert needed(people) == [again]


def test_a_dismissed_request_comes_back_with_a_comment_and_before_its_end(people: People) -> None:
    version = make_model(project=people.project, by=people.owner).versions.get()
    request = make_promotion(version, by=people.owner)
    PromotionRequest.objects.update(expires=timezone.now() + timedelta(days=5))
    request.refresh_from_db()
    dismiss(request, people.approver)
    assert needs_of(people.approver).approvals == []
    assert approvals_to_decide(people.approver).count() == 1, "the inbox has it still"
    Decision.objects.create(promotion=request, user=people.owner, verdict="comment", digest="")
    assert needs_of(people.approver).approvals == [request]
    dismiss(PromotionRequest.objects.get(), people.approver)
    assert needs_of(people.approver).approvals == []
    PromotionRequest.objects.update(expires=timezone.now() + timedelta(hours=5))
    assert needs_of(people.approver).approvals == [request]


def test_a_pending_request_can_be_dismissed_on_home(people: People) -> None:
    version = make_model(project=people.project, by=people.owner).versions.get()
    request = make_promotion(version, by=people.owner)
    page = browser_of(people.approver).get("/").content.decode()
    assert f"/approvals/{request.pk}" in page
    assert f"Dismiss {request}" in page


def test_dismissed_things_are_counted_and_shown_again_by_a_button(people: People) -> None:
    soon = timezone.now() + timedelta(days=2)
    token = ApiToken.objects.create(user=people.owner, name="ci", prefix="a", digest="a", expires=soon)
    browser = browser_of(people.owner)
    assert 'action="/needs/dismiss"' in browser.get("/").content.decode()
    dismiss(token, people.owner)
    page = browser.get("/").content.decode()
    assert "1 dismissed" in page and 'action="/needs/restore"' in page
    assert 'action="/needs/dismiss"' not in page
    browser.post("/needs/restore")
    assert needs_of(people.owner).expiring == [token]


def test_what_was_dismissed_long_ago_is_forgotten(people: People) -> None:
    Dismissal.objects.create(user=people.owner, kind="job", row=1, state="x")
    Dismissal.objects.update(created=timezone.now() - timedelta(days=100))
    dismiss(failed(people), people.owner)
    assert [row.row for row in Dismissal.objects.all()] == [Job.objects.get().pk]


def test_more_things_take_the_places_of_dismissed_ones(people: People) -> None:
    for _ in range(7):
        dismiss(failed(people), people.owner)
    last = failed(people)
    assert needed(people) == [last]
