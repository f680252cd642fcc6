"""Quantizing and casting a version by REST and on its page: the job, the new version, and refusals."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.test import Client

from jobs.actions.registry import registration, registry
from jobs.actions.runs import attempt_end, schedule
from jobs.actions.runs.kind_actions import actions_of
from jobs.kinds.quantize.payload import QuantizePayload, QuantizeTask
from jobs.models import CodeVersion, Job, Membership, ModelVersion, Role, User
from jobs.states import Outcome
from tests import factories
from tests.jobs.yard import PretendWorker, Yard, make_yard
from tests.markup import text_of
from tests.people import browser_of
from tests.registry.conftest import SIGNATURE


@pytest.fixture
def own(db: None) -> Yard:
    return make_yard()


@pytest.fixture
def worker(own: Yard) -> PretendWorker:
    return PretendWorker()


def trained(own: Yard, worker: PretendWorker, **spec: Any) -> ModelVersion:
    """Train a model, register it and validate the version."""
    own.submit(**spec)
    attempt = end(worker, {})
    file = factories.make_job_artifact(attempt.job)
    model = registry.create_model(own.project, "flowers-model", by=own.owner)
    version = registration.add_version(model, file.artifact_id, by=own.owner).version
    registration.mark_validated(version.pk, signature=SIGNATURE)
    Job.objects.exclude(pk=attempt.job_id).delete()
    version.refresh_from_db()
    return version


def end(worker: PretendWorker, result: dict[str, Any]) -> Any:
    schedule.place_jobs()
    (attempt,) = worker.claim_all()
    attempt_end.finish(attempt.pk, Outcome.COMPLETED, result=result)
    return attempt


def post(own: Yard, route: str, body: dict[str, Any], by: Any = None) -> Any:
    path = f"/api/v1/models/flowers-model/versions/1/{route}"
    return browser_of(by or own.owner).post(path, body, content_type="application/json")


@pytest.mark.parametrize(
    ("route", "body", "mode", "title"),
    [
        ("cast", {"dtype": "bfloat16"}, "bfloat16", "Cast flowers-model"),
        ("quantize", {"mode": "float16"}, "float16", "Cast flowers-model"),
        ("quantize", {}, "int8", "Quantize flowers-model"),
    ],
)
def test_the_job_makes_a_new_version_of_the_same_model(
    own: Yard, worker: PretendWorker, route: str, body: dict[str, Any], mode: str, title: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    version = trained(own, worker)
    answer = post(own, route, body)
    assert answer.status_code == 202, answer.content
    job = Job.objects.get(pk=answer.json()["id"])
    assert job.title.startswith(title)
    assert job.payload_as(QuantizePayload).mode == mode
    schedule.place_jobs()
    (attempt,) = worker.claim_all()
    task = attempt_task(attempt, monkeypatch)
    assert (task.quantize.mode, task.model.endswith(version.artifact_id)) == (mode, True)
    factories.make_job_artifact(attempt.job)
    attempt_end.finish(attempt.pk, Outcome.COMPLETED, result={})
    new = ModelVersion.objects.get(model=version.model, number=2)
    assert (new.what, new.source_job_id, new.state) == ("quantized", job.pk, "validating")
    assert "quantized or cast already" in refused_second(own, new)


def refused_second(own: Yard, new: ModelVersion) -> str:
    """Return why the new version is not made smaller again."""
    registration.mark_validated(new.pk, signature=SIGNATURE)
    path = "/api/v1/models/flowers-model/versions/2/cast"
    answer = browser_of(own.owner).post(path, {"dtype": "float16"}, content_type="application/json")
    assert answer.status_code == 422, answer.content
    return str(answer.json()["errors"][0]["message"])


def attempt_task(attempt: Any, monkeypatch: pytest.MonkeyPatch) -> QuantizeTask:
    """Return the task of an attempt, whose files need not exist."""
    files = SimpleNamespace(path=lambda digest: Path("/store") / digest)
    for module in ("jobs.kinds.quantize.actions", "jobs.actions.runs.tasks"):
        monkeypatch.setattr(f"{module}.store", lambda: files)
    task = actions_of(attempt.job).build_task(attempt, {"folder": "."})
    assert isinstance(task, QuantizeTask)
    return task


def test_a_lost_worker_adds_no_version_and_the_next_attempt_adds_one(
    own: Yard, worker: PretendWorker
) -> None:
    version = trained(own, worker)
    post(own, "cast", {"dtype": "float16"})
    schedule.place_jobs()
    (attempt,) = worker.claim_all()
    factories.make_job_artifact(attempt.job)
    attempt_end.finish(attempt.pk, Outcome.LOST)
    assert version.model.versions.count() == 1
    end(worker, {})
    # The same end that is reported twice adds one version.
    assert version.model.versions.count() == 2


@pytest.mark.parametrize(
    ("route", "body", "pointer"),
    [
        ("cast", {"dtype": "float8"}, "/dtype"),
        ("cast", {}, "/dtype"),
        ("quantize", {"mode": "keras_file"}, "/mode"),
    ],
)
def test_a_wrong_format_names_its_field(
    own: Yard, worker: PretendWorker, route: str, body: dict[str, Any], pointer: str
) -> None:
    trained(own, worker)
    answer = post(own, route, body)
    assert answer.status_code == 422, answer.content
    assert [error["pointer"] for error in answer.json()["errors"]] == [pointer]


def test_a_version_without_test_rows_and_one_trained_in_float8_are_refused_with_the_reason(
    own: Yard, worker: PretendWorker
) -> None:
    version = trained(own, worker, precision={"policy": "float8"})
    assert "their own scales" in post(own, "cast", {"dtype": "float16"}).json()["errors"][0]["message"]
    ModelVersion.objects.filter(pk=version.pk).update(source_job=None)
    assert "was not trained here" in post(own, "cast", {"dtype": "float16"}).json()["errors"][0]["message"]
    ModelVersion.objects.filter(pk=version.pk).update(state="invalid")
    assert post(own, "cast", {"dtype": "float16"}).status_code == 409


def test_a_stranger_finds_no_version(own: Yard, worker: PretendWorker) -> None:
    trained(own, worker)
    stranger = User.objects.create_user("sam")
    assert post(own, "cast", {"dtype": "float16"}, by=stranger).status_code == 404
    path = "/api/v1/models/flowers-model/versions/1/cast"
    answer = Client().post(path, {"dtype": "float16"}, content_type="application/json")
    assert answer.status_code == 401


PAGE = "/models/flowers-model/versions/1"


def card(user: User) -> str:
    """Return the text of the card with the buttons; empty if the page has none."""
    page = text_of(browser_of(user).get(PAGE))
    return page.partition("Smaller version")[2].partition("Facts")[0]


def colleague(own: Yard, role: Role) -> User:
    user = User.objects.create_user(role.value)
    Membership.objects.create(project=own.project, user=user, role=role)
    return user


@pytest.mark.parametrize("mode", ["int8", "float16", "bfloat16"])
def test_a_button_of_the_page_queues_the_job_and_leads_to_it(
    own: Yard, worker: PretendWorker, mode: str
) -> None:
    version = trained(own, worker)
    browser = browser_of(own.owner)
    page = browser.get(PAGE).content.decode()
    assert f"{PAGE}/smaller?mode={mode}" in page
    dialog = browser.get(f"{PAGE}/smaller", {"mode": mode}).content.decode()
    assert f"{'Quantize' if mode == 'int8' else 'Cast'} {version} to {mode}" in dialog
    assert f"compares it with {version} on the same test rows" in dialog
    answer = browser.post(f"{PAGE}/smaller", {"mode": mode})
    job = Job.objects.latest("pk")
    assert (answer.status_code, answer["Location"]) == (303, f"/jobs/{job.pk}")
    assert job.payload_as(QuantizePayload).mode == mode
    # The page lists the job while it runs.
    assert job.title in card(own.owner)
    # A second click, or a second person, makes no second one.
    again = browser.post(f"{PAGE}/smaller", {"mode": mode}, follow=True)
    assert f"Job {job.pk} makes {version} in {mode} already." in text_of(again)
    assert Job.objects.latest("pk") == job


def test_the_page_says_why_no_smaller_version_can_be_made(own: Yard, worker: PretendWorker) -> None:
    version = trained(own, worker)
    ModelVersion.objects.filter(pk=version.pk).update(source_job=None)
    assert "was not trained here" in card(own.owner)
    assert "Cast to" not in card(own.owner)
    refused = browser_of(own.owner).post(
        f"{PAGE}/smaller", {"mode": "float16"}, headers={"Referer": f"http://testserver{PAGE}"}, follow=True
    )
    assert refused.redirect_chain == [(PAGE, 303)]
    assert text_of(refused).count("was not trained here") == 2, "in the message and on the card"
    ModelVersion.objects.filter(pk=version.pk).update(state="invalid")
    assert card(own.owner) == ""


def test_viewers_and_those_who_may_not_run_code_see_who_may_instead_of_buttons(
    own: Yard, worker: PretendWorker
) -> None:
    version = trained(own, worker)
    viewer, member = colleague(own, Role.VIEWER), colleague(own, Role.MEMBER)
    assert "Members of" in card(viewer)
    assert "Cast to" not in card(viewer)
    assert "Cast to float16" in card(member)
    code: CodeVersion = factories.make_code(project=own.project, by=own.owner)
    ModelVersion.objects.filter(pk=version.pk).update(code=code)
    assert "trainers and admins of" in card(member)
    assert "Cast to" not in card(member)
    for user in (viewer, member):
        assert browser_of(user).post(f"{PAGE}/smaller", {"mode": "float16"}).status_code == 403
    assert not Job.objects.filter(kind="quantize").exists()
