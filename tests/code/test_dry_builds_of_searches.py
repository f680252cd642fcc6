"""Searches and trainings that wait for the dry build of their code."""

import time
from typing import Any

import pytest
from django.test import Client

from jobs.actions.runs import pipeline, schedule
from jobs.actions.search import suggest
from jobs.messages.events import Declared
from jobs.models import CodeVersion, Job, Trial
from jobs.queries.search import outcomes
from jobs.spec.checks.dry_build import BuiltModel
from tests import factories
from tests.code.dry_builds import BUILT, ask, created, field, finish, pointers, spec_of
from tests.jobs.yard import PretendWorker
from tests.markup import text_of
from tests.next_steps import has_next_step
from tests.people import People, browser_of


def submitted(api: Client, spec: dict[str, Any]) -> Job:
    answer = created(api, spec)
    assert answer.status_code == 201, answer.content
    job = api.post(f"/api/v1/experiments/{answer.json()['id']}/submit", content_type="application/json")
    assert job.status_code == 202, job.content
    return Job.objects.get(pk=job.json()["job"])


def test_a_search_without_a_dry_build_does_it_first(api: Client, code: str, worker: PretendWorker) -> None:
    root = submitted(api, spec_of(code))
    pipeline.advance(root)
    pipeline.advance(root)
    job = Job.objects.get(kind="dry_build")
    root.refresh_from_db()
    assert root.why_waiting == f"Its hyperparameters are found by a dry build of its code: job {job.pk}."
    finish(worker)
    root.refresh_from_db()
    pipeline.advance(root)
    root.refresh_from_db()
    assert root.revision is not None and root.revision.reason == "the space that the code declares"
    assert [row.name for row in root.revision.spec.search.space] == ["units", "rate", "dropout"]  # type: ignore[union-attr]
    # The next one knows the space at once.
    second = submitted(api, spec_of(code))
    pipeline.advance(second)
    assert Job.objects.filter(kind="dry_build").count() == 1


def test_a_first_configuration_has_the_defaults_of_hyperparameters_that_only_the_code_declares(
    api: Client, code: str, worker: PretendWorker
) -> None:
    rows = [{"name": "units", "kind": "int", "min": 8, "max": 16, "step": 8}]
    root = submitted(api, spec_of(code, space=rows, start_with=[{"units": 16}]))
    pipeline.advance(root)
    finish(worker)
    root.refresh_from_db()
    pipeline.advance(root)
    root.refresh_from_db()
    (first,) = outcomes.search_of(root).start_with
    assert (root.state, list(first), first["units"]) == ("queued", ["units", "rate", "dropout"], 16)


@pytest.mark.parametrize(
    ("built", "error", "code_of_error", "words"),
    [
        (None, {"code": "code_build", "message": "it returned nothing"}, "code_build", "it returned nothing"),
        (BUILT.model_copy(update={"space": ()}), None, "empty_space", "declares no hyperparameters"),
        (BUILT.model_copy(update={"metrics": ("val_loss",)}), None, "bad_spec", "'val_f1' is not measured"),
    ],
)
def test_a_search_whose_dry_build_shows_no_way_fails_with_its_cause(
    api: Client, code: str, worker: PretendWorker, built: Any, error: Any, code_of_error: str, words: str
) -> None:
    root = submitted(api, spec_of(code))
    pipeline.advance(root)
    finish(worker, built, error)
    root.refresh_from_db()
    pipeline.advance(root)
    root.refresh_from_db()
    assert root.state == "failed"
    assert root.error is not None and root.error["code"] == code_of_error
    assert words in root.error["message"]


@pytest.mark.parametrize(("built", "state"), [(BUILT, "queued"), (None, "failed")])
def test_the_end_of_a_dry_build_wakes_the_searches_that_wait_for_it(
    api: Client,
    code: str,
    worker: PretendWorker,
    django_capture_on_commit_callbacks: Any,
    built: BuiltModel | None,
    state: str,
) -> None:
    roots = [submitted(api, spec_of(code)), submitted(api, spec_of(code))]
    for root in roots:
        pipeline.advance(root)
    assert Job.objects.filter(kind="dry_build").count() == 1
    with django_capture_on_commit_callbacks(execute=True):
        finish(worker, built, {"code": "code_build", "message": "it returned nothing"})
    for root in roots:
        root.refresh_from_db()
        assert (root.state, root.why_waiting) == (state, "" if built else root.why_waiting)
        assert (root.revision is not None and root.revision.number == 2) == (built is not None)


def test_a_search_over_fields_of_fit_alone_needs_no_space_of_its_code(
    api: Client, code: str, worker: PretendWorker
) -> None:
    ask(api, code)
    finish(worker, BUILT.model_copy(update={"space": ()}))
    assert pointers(created(api, spec_of(code))) == ["/spec/search"]
    assert created(api, spec_of(code, space=[field("batch_size", 16, 32)])).status_code == 201


def test_a_range_of_the_code_cannot_be_widened_and_the_answer_says_so(
    api: Client, code: str, worker: PretendWorker
) -> None:
    ask(api, code)
    finish(worker)
    narrower = {"name": "units", "kind": "int", "min": 8, "max": 16, "step": 8}
    root = submitted(api, spec_of(code, space=[narrower]))
    (trial,) = factories.make_trials(root, 1)
    Trial.objects.filter(pk=trial.pk).update(values={"units": 16, "rate": 0.1, "dropout": True})
    Job.objects.filter(pk=root.pk).update(state="completed")
    answer = api.get(f"/api/v1/jobs/{root.pk}/answer").json()
    assert (answer["at_edge"], answer["at_declared_edge"]) == (["units", "rate"], ["rate"])
    page = text_of(api.get(f"/jobs/{root.pk}"))
    assert "Widen the range… the best value of units is at the bound" in page
    assert "Declare a wider range of rate in the code" in page
    assert root.experiment is not None
    experiment = api.get(f"/p/yard/experiments/{root.experiment.pk}").content.decode()
    assert f'href="/code/{code}?project=yard"' in experiment


@pytest.mark.parametrize("one_call", [False, True])
def test_a_training_that_cannot_be_continued_is_named_before_it_is_paused(
    api: Client, code: str, worker: PretendWorker, one_call: bool
) -> None:
    ask(api, code)
    finish(worker, BUILT.model_copy(update={"one_call": one_call}))
    body = {"project": "yard", "spec": spec_of(code)}
    plan = api.post("/api/v1/experiments/validate", body, content_type="application/json").json()["plan"]
    warnings = [warning for warning in plan["warnings"] if "one call of fit" in warning["message"]]
    assert [warning["pointer"] for warning in warnings] == ["/model/entry"] * one_call
    assert all(has_next_step(warning["message"]) for warning in warnings)
    root = submitted(api, spec_of(code))
    Job.objects.filter(pk=root.pk).update(state="running", started=root.queued)
    assert ("Pause this job?" in api.get(f"/jobs/{root.pk}").content.decode()) == one_call


def test_a_search_that_is_retried_builds_again(api: Client, code: str, worker: PretendWorker) -> None:
    root = submitted(api, spec_of(code))
    pipeline.advance(root)
    finish(worker, None, {"code": "code_build", "message": "no"})
    root.refresh_from_db()
    pipeline.advance(root)
    assert api.post(f"/api/v1/jobs/{root.pk}/retry").status_code == 202
    root.refresh_from_db()
    pipeline.advance(root)
    finish(worker)
    root.refresh_from_db()
    pipeline.advance(root)
    root.refresh_from_db()
    assert root.state != "failed" and len(root.revision.spec.search.space) == 3  # type: ignore[union-attr]


def test_a_member_may_not_run_a_dry_build_again(
    api: Client, code: str, worker: PretendWorker, people: People
) -> None:
    job = ask(api, code).json()["job"]
    finish(worker, None, {"code": "code_build", "message": "no"})
    assert browser_of(people.member).post(f"/api/v1/jobs/{job}/retry").status_code == 403
    assert api.post(f"/api/v1/jobs/{job}/retry").status_code == 202


def test_values_without_a_search_are_checked(api: Client, code: str, worker: PretendWorker) -> None:
    ask(api, code)
    finish(worker)
    spec = spec_of(code)
    del spec["search"]
    spec["model"]["hyperparameters"] = {"units": 16}
    assert created(api, spec).status_code == 201
    spec["model"]["hyperparameters"] = {"units": 500, "unit": 3}
    assert pointers(created(api, spec)) == [
        "/spec/model/hyperparameters/units",
        "/spec/model/hyperparameters/unit",
    ]


def test_a_task_has_the_files_of_its_code(
    api: Client, code: str, worker: PretendWorker, tmp_path: Any
) -> None:
    from jobs.actions.runs import schedule, tasks

    ask(api, code)
    schedule.place_jobs()
    (attempt,) = worker.claim_all()
    task = tasks.task_for(attempt.pk, folder=tmp_path, threads=1)
    assert task.code is not None
    version = CodeVersion.objects.get()
    assert (task.code.digest, [file.path for file in task.code.files]) == (version.digest, ["model.py"])


def test_a_worker_without_a_sandbox_gets_no_dry_build(api: Client, code: str, people: People) -> None:
    from jobs.actions.runs import schedule

    weak = PretendWorker(slots=1)
    job = ask(api, code).json()["job"]
    schedule.place_jobs()
    assert weak.claim_all() == []
    assert "needs the sandbox" in Job.objects.get(pk=job).why_waiting


@pytest.fixture
def grown(api: Client, code: str, worker: PretendWorker) -> Job:
    """A search in which a trial has found `rates`, whose name looks like a slip for `rate`."""
    ask(api, code)
    finish(worker)
    root = submitted(api, spec_of(code, algorithm="random", start_with=[]))
    pipeline.advance(root)
    suggest.make_trial(root, {"units": 8, "rate": 0.01, "dropout": True}, source="algorithm")
    schedule.place_jobs()
    (attempt,) = worker.claim_all()
    row = {"name": "rates", "kind": "int", "min": 1, "max": 9}
    body = {"time": time.time(), "trial": 1, "rows": [row], "values": {"rates": 1}}
    worker.report(attempt, Declared.model_validate(body))
    root.refresh_from_db()
    return root


def test_the_next_search_with_the_code_begins_with_what_a_trial_has_found(
    api: Client, code: str, grown: Job
) -> None:
    (answer,) = [ask(api, code).json()["built"]]
    assert [row["name"] for row in answer["space"]] == ["units", "rate", "dropout", "rates"]
    assert answer["notes"] == [f"not found by the dry build, but by trial 1 of search {grown.pk}: rates"]
    assert created(api, spec_of(code)).status_code == 201
    copy = Job.objects.get(pk=api.post(f"/api/v1/jobs/{grown.pk}/clone").json()["id"])
    pipeline.advance(copy)
    copy.refresh_from_db()
    names = [row.name for row in outcomes.search_of(copy).space]
    assert (copy.state, names) == ("queued", ["units", "rate", "dropout", "rates"])


def test_the_page_says_what_was_found_at_which_trial(api: Client, grown: Job) -> None:
    page = text_of(api.get(f"/jobs/{grown.pk}"))
    assert "Found during the search rates at trial 1" in page
    columns = api.get(f"/api/v1/jobs/{grown.pk}/trials/columns").json()
    assert [axis.get("found_by") for axis in columns["space"]] == [None, None, None, 1]
    download: Any = api.get(f"/api/v1/jobs/{grown.pk}/trials.csv")
    assert b"rates" in b"".join(download.streaming_content).splitlines()[0]
