"""Data that own code loads: requests by REST and page, the version that a job makes, and lost workers."""

import re
from html import escape, unescape
from typing import Any

import pytest
from django.test import Client

from jobs.actions.runs import attempt_end, schedule, tasks
from jobs.actions.storage import deletions
from jobs.messages.events import ArtifactWritten
from jobs.models import Dataset, DatasetVersion, Job, Project
from jobs.states import Outcome
from jobs.store import store
from tests import factories
from tests.code.dry_builds import created, pointers, spec_of, stored
from tests.code.same_time import before_lock
from tests.jobs.yard import PretendWorker
from tests.markup import squeezed
from tests.people import People, browser_of
from tests.present import present

CODE = """
import numpy as np

def load_data(split):
    return np.zeros((3, 2)), np.arange(3)

def build_model(hp):
    ...
"""
RESULT = {
    "source": "npz",
    "target": "y",
    "part": "part",
    "rows": {"train": 3, "validation": 2, "test": 1},
}


@pytest.fixture
def api(people: People) -> Client:
    return browser_of(people.trainer)


@pytest.fixture
def code(api: Client) -> str:
    return stored(api, CODE)


def load(api: Client, code: str, dataset: str = "waves", **more: Any) -> Any:
    body = {"dataset": dataset, **more}
    return api.post(f"/api/v1/code/{code}/data", body, content_type="application/json")


def end(worker: PretendWorker, outcome: Outcome = Outcome.COMPLETED, *, error: Any = None) -> None:
    """Let the worker run the job that waits; if it completes, the code has left a file."""
    schedule.place_jobs()
    (attempt,) = worker.claim_all()
    if outcome is Outcome.COMPLETED:
        event = ArtifactWritten(time=1, role="loaded", path="load_data.npz", name="load_data.npz")
        worker.report(attempt, event, files={event.path: store().put_blocks([b"rows"])})
        attempt_end.finish(attempt.pk, outcome, result=RESULT)
    else:
        attempt_end.finish(attempt.pk, outcome, error=error)


def test_the_rows_of_the_code_become_a_version_that_is_read_like_an_upload(
    api: Client,
    code: str,
    worker: PretendWorker,
    tmp_path: Any,
) -> None:
    first = load(api, code)
    assert (first.status_code, first.json()["state"], first.json()["version"]) == (202, "queued", None)
    assert load(api, code).json()["job"] == first.json()["job"], "an open job is not repeated"
    end(worker)
    answer = load(api, code).json()
    assert (answer["job"], answer["dataset"], answer["version"]) == (first.json()["job"], "waves", 1)
    assert (answer["version_state"], answer["rows"]) == ("preparing", RESULT["rows"])
    version = DatasetVersion.objects.get()
    version_out = api.get("/api/v1/datasets/waves/versions/1", {"project": "yard"}).json()
    assert version_out["code"] == {"digest": code, "entry": "load_data", "job": answer["job"]}
    schedule.place_jobs()
    (attempt,) = worker.claim_all()
    task: Any = tasks.task_for(attempt.pk, folder=tmp_path, threads=1)
    assert (task.kind, task.source, task.target, task.code) == ("profile", "npz", "y", None), "no sandbox"
    assert [column.role for column in task.columns] == ["split"]
    attempt_end.finish(attempt.pk, Outcome.FAILED, error={"code": "bad_data", "message": "no"})
    # The same data set gets a further version, and a change of its roles keeps the code.
    assert load(api, code, again=True).json()["job"] != answer["job"]
    end(worker)
    assert api.get(f"/api/v1/code/{code}/data").json()["items"][0]["version"] == 2
    again = api.post(
        "/api/v1/datasets/waves/versions/2/read?project=yard",
        {"task": "regression"},
        content_type="application/json",
    )
    assert again.json()["code"]["digest"] == code
    page = squeezed(api.get("/datasets/waves/versions/1?project=yard").content.decode())
    assert f'href="/code/{code}?project=yard#data"' in page and version.request["file"] not in page


def test_of_two_equal_requests_at_the_same_time_the_second_finds_the_job_of_the_first(
    api: Client, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    Project.objects.update(max_jobs=1)
    first: list[int] = []
    before_lock(monkeypatch, lambda: first.append(load(api, code).json()["job"]))
    answer = load(api, code)
    assert (answer.status_code, answer.json()["job"]) == (202, first[0])
    assert Job.objects.filter(kind="code_data").count() == 1


def test_a_lost_worker_leaves_no_version_and_the_job_begins_again(
    api: Client,
    code: str,
    worker: PretendWorker,
) -> None:
    job = Job.objects.get(pk=load(api, code).json()["job"])
    end(worker, Outcome.LOST, error=attempt_end.WORKER_DIED)
    job.refresh_from_db()
    assert (job.state, Dataset.objects.count()) == ("retrying", 0)
    end(worker)
    job.refresh_from_db()
    assert (job.state, DatasetVersion.objects.count()) == ("completed", 1)


def test_a_failure_is_shown_and_repeated_on_request(
    api: Client,
    code: str,
    worker: PretendWorker,
) -> None:
    job = load(api, code).json()["job"]
    end(worker, Outcome.FAILED, error={"code": "code_data", "message": "load_data('train') failed: no"})
    failed = load(api, code).json()
    assert (failed["job"], failed["state"], failed["error"]["code"]) == (job, "failed", "code_data")
    assert "load_data(&#x27;train&#x27;) failed: no" in api.get(f"/code/{code}?project=yard").content.decode()
    assert load(api, code, again=True).json()["state"] == "queued"
    assert not Dataset.objects.exists()


def test_a_name_that_was_deleted_meanwhile_fails_the_job(
    api: Client,
    code: str,
    worker: PretendWorker,
    people: People,
) -> None:
    job = Job.objects.get(pk=load(api, code).json()["job"])
    data = factories.make_dataset("waves", project=people.project, by=people.trainer)
    deletions.delete(data, by=people.trainer)
    end(worker)
    job.refresh_from_db()
    assert (job.state, "was deleted and can be restored" in present(job.error)["message"]) == ("failed", True)
    assert pointers(load(api, code, again=True)) == ["/dataset"]


@pytest.mark.parametrize("is_new", [True, False])
def test_a_quota_that_was_reached_meanwhile_fails_the_job(
    api: Client,
    code: str,
    worker: PretendWorker,
    people: People,
    is_new: bool,
) -> None:
    """Otherwise its attempt would stay open until its lease expires, and the code would load again."""
    job = Job.objects.get(pk=load(api, code).json()["job"])
    if not is_new:
        factories.make_dataset("waves", project=people.project, by=people.trainer)
    before = DatasetVersion.objects.count()
    Project.objects.filter(pk=people.project.pk).update(max_bytes=1)
    end(worker)
    job.refresh_from_db()
    assert (job.state, present(job.error)["code"]) == ("failed", "quota_reached")
    assert DatasetVersion.objects.count() == before


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"dataset": "Two Words"}, "/dataset"),
    ({"entry": "load_it"}, "/entry"),
    ({"entry": "other.py:load_data"}, "/entry"),
    ({"entry": "a b"}, "/entry"),
    ({"task": "guessing"}, "/task"),
]


def test_a_wrong_request_names_its_field(api: Client, code: str) -> None:
    for sent, pointer in WRONG:
        assert pointers(load(api, code, **sent)) == [pointer], sent
    assert not Job.objects.exists()


def test_only_people_who_may_run_code_load_data(api: Client, code: str, people: People) -> None:
    assert load(browser_of(people.member), code).status_code == 403
    assert load(browser_of(people.stranger), code).status_code == 404
    assert browser_of(people.viewer).get(f"/api/v1/code/{code}/data").json() == {"items": []}
    page = browser_of(people.member).get(f"/code/{code}?project=yard").content.decode()
    assert "Loading executes the code" in squeezed(page) and f"/code/{code}/data" not in page
    refused = browser_of(people.member).post(f"/code/{code}/data?project=yard", {"slug": "waves"})
    assert refused.status_code == 403


def test_the_page_loads_data_and_leads_to_an_experiment_with_them(
    api: Client,
    code: str,
    worker: PretendWorker,
    people: People,
) -> None:
    page = api.get(f"/code/{code}?project=yard")
    assert page.context["data_name"] == "model-data"
    assert "in a sandbox, without network" in squeezed(page.content.decode())
    form = {"slug": "waves", "entry": "load_data", "task": ""}
    sent = api.post(f"/code/{code}/data?project=yard", form)
    assert (sent.status_code, sent["Location"]) == (303, f"/code/{code}?project=yard#data")
    code_page = api.get(f"/code/{code}?project=yard").content.decode()
    (address,) = re.findall(r'hx-get="([^"]+)"', code_page)
    part = api.get(unescape(address), headers={"HX-Request": "true"}).content.decode().strip()
    assert 'id="data"' in part and part.endswith("</section>") and "<form" not in part
    end(worker)
    DatasetVersion.objects.update(state="ready", profile_json=factories.profile())
    page = api.get(f"/code/{code}?project=yard")
    ((_, place, start),) = page.context["loads"]
    job = api.get(f"/jobs/{Job.objects.get(kind='code_data').pk}").content.decode()
    assert f'href="{place}"' in job and f'href="/code/{code}?project=yard#data"' in job
    assert place == "/datasets/waves/versions/1?project=yard"
    assert "dataset=waves" in start and api.get(start).status_code == 200
    assert escape(start) in page.content.decode()
    # An experiment with the code is offered to those who may submit it.
    of_member = browser_of(people.member).get(f"/code/{code}?project=yard").content.decode()
    assert "waves v1" in of_member and escape(start) not in of_member
    # Also without the data set in the address.
    form_page = api.get(f"/p/yard/experiments/new?code={code}&entry=build_model").content.decode()
    assert "&quot;dataset&quot;: &quot;waves&quot;" in form_page


def test_an_experiment_with_code_and_without_data_says_how_it_gets_them(api: Client, code: str) -> None:
    spec = spec_of(code)
    del spec["data"]
    answer = created(api, spec)
    assert pointers(answer) == ["/spec/data"]
    assert "POST /api/v1/code/DIGEST/data" in answer.json()["errors"][0]["message"]
