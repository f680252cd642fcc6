"""Answers have the shapes that the OpenAPI document describes."""

import json
from typing import Any, get_args

import pytest
from django.db import transaction
from django.test import Client
from pydantic import TypeAdapter

from jobs.actions.runs import events
from jobs.answers.runs.events import EventsOut, LogsOut
from jobs.answers.runs.jobs import JobOut, JobStateOut
from jobs.answers.runs.metrics import MetricsOut
from jobs.answers.runs.results import ResultsOut
from jobs.answers.search.search_results import ColumnsOut, TimelineOut
from jobs.answers.search.trials import TrialOut, TrialStateOut
from jobs.models import Job
from jobs.states import Desired, JobState, TrialState
from tests.factories import make_experiment, make_job, make_job_artifact
from tests.people import People, browser_of
from tests.seeded import seed_search


@pytest.fixture
def search(people: People) -> Job:
    """A search that has trials of every outcome, metrics, events and artifacts."""
    job = seed_search(people.project, by=people.owner, trials=60)
    child = make_job(
        experiment=job.experiment, by=people.owner, kind="train", state="completed", parent=job, root=job
    )
    make_job_artifact(child)
    bodies = [
        events.event("state", job, state="running"),
        events.event("metric", job, trial=1, execution=1, x="epoch", points=[["loss", 1.0, None, 1.5]]),
        events.event("log", job, level="info", source="runner", line="one line"),
        events.event("revised", job, revision=2, by="owner", changes=["fewer trials"]),
    ]
    with transaction.atomic():
        events.append(job.pk, bodies)
    return job


@pytest.fixture
def browser(people: People) -> Client:
    return browser_of(people.owner)


def read(browser: Client, path: str) -> Any:
    response = browser.get(f"/api/v1{path}")
    assert response.status_code == 200, response.content
    return json.loads(response.content)


@pytest.mark.parametrize(
    ("path", "shape"),
    [
        ("", JobOut),
        ("/trials/1", TrialOut),
        ("/trials/41", TrialOut),
        ("/metrics?trial=1", MetricsOut),
        ("/events", EventsOut),
        ("/logs", LogsOut),
        ("/trials/columns", ColumnsOut),
        ("/timeline", TimelineOut),
    ],
)
def test_responses_have_the_documented_shapes(browser: Client, search: Job, path: str, shape: Any) -> None:
    TypeAdapter(shape).validate_python(read(browser, f"/jobs/{search.pk}{path}"))


def test_the_results_of_a_search_are_typed(browser: Client, search: Job) -> None:
    results = read(browser, f"/jobs/{search.pk}")["results"]
    TypeAdapter(ResultsOut).validate_python(results)
    assert results.keys() >= {"best_trial", "artifacts", "versions", "warnings"}
    assert results["artifacts"][0].keys() == {"digest", "role", "bytes", "name", "job", "meta"}


def test_a_job_has_every_key_of_its_shape_even_where_it_is_null(browser: Client, people: People) -> None:
    job = make_job(project=people.project, by=people.owner, kind="profile")
    body = read(browser, f"/jobs/{job.pk}")
    assert body.keys() == JobOut.model_fields.keys()
    assert (body["error"], body["experiment"], body["finished"]) == (None, None, None)


def test_times_of_jobs_are_milliseconds_in_utc(browser: Client, people: People) -> None:
    job = make_job(experiment=make_experiment(project=people.project, by=people.owner), by=people.owner)
    created = job.created.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    assert read(browser, f"/jobs/{job.pk}")["created"] == created


def test_the_documented_states_are_all_states() -> None:
    assert set(get_args(JobStateOut)) == set(JobState)
    assert set(get_args(TrialStateOut)) == set(TrialState)
    assert set(get_args(JobOut.model_fields["desired"].annotation)) == set(Desired)
