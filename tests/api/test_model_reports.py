"""The reports about models by REST: the same figures and sentences as on the pages."""

import pytest

from jobs.models import Job
from tests.factories import make_job, make_model
from tests.people import People, browser_of
from tests.reports import ensemble_report, evaluation_report, quantization_report, store_report


@pytest.fixture
def quantized(people: People) -> Job:
    root = make_job(by=people.owner, project=people.project, state="completed", kind="train")
    job = make_job(by=people.owner, project=people.project, state="completed", kind="quantize", parent=root)
    store_report(job, quantization_report())
    store_report(job, evaluation_report("multiclass"), role="evaluation", name="evaluation.json")
    return job


def test_a_root_lists_the_reports_of_its_steps_with_their_verdicts(people: People, quantized: Job) -> None:
    body = browser_of(people.viewer).get(f"/api/v1/jobs/{quantized.parent_id}/reports").json()
    report, evaluation = body["items"]
    assert (report["job"], report["role"]) == (quantized.pk, "report")
    assert report["verdict"].startswith("int8 is 3.9× smaller")
    assert report["report"]["layers"][1]["relative_error"] == 0.0079
    assert evaluation["report"]["calibration"]["bins"]
    assert body["next"] is None


def test_a_role_selects_the_reports(people: People, quantized: Job) -> None:
    browser = browser_of(people.viewer)
    reports = browser.get(f"/api/v1/jobs/{quantized.pk}/reports", {"role": "evaluation"}).json()["items"]
    assert [report["role"] for report in reports] == ["evaluation"]
    assert browser.get(f"/api/v1/jobs/{quantized.pk}/reports", {"role": "model"}).status_code == 422


def test_a_version_lists_the_reports_of_the_job_that_made_it(people: People, quantized: Job) -> None:
    make_model("digits", project=people.project, by=people.owner).versions.update(source_job=quantized)
    body = browser_of(people.viewer).get("/api/v1/models/digits/versions/1/reports").json()
    assert [report["role"] for report in body["items"]] == ["report", "evaluation"]


def test_a_report_survives_rest_unchanged(people: People) -> None:
    pooled = make_job(by=people.owner, project=people.project, state="completed", kind="ensemble")
    report = ensemble_report()
    store_report(pooled, report)
    (answer,) = browser_of(people.viewer).get(f"/api/v1/jobs/{pooled.pk}/reports").json()["items"]
    assert type(report).model_validate(answer["report"]) == report


def test_a_stranger_finds_no_reports(people: People, quantized: Job) -> None:
    make_model("digits", project=people.project, by=people.owner).versions.update(source_job=quantized)
    stranger = browser_of(people.stranger)
    for path in (f"/api/v1/jobs/{quantized.pk}/reports", "/api/v1/models/digits/versions/1/reports"):
        assert stranger.get(path).status_code == 404
