"""Lists over REST: pagination, order, filters and the number of queries."""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from jobs.actions.runs import events
from jobs.models import Checkpoint, Job
from tests.factories import (
    SEARCH,
    make_dataset,
    make_experiment,
    make_job,
    make_job_artifact,
    make_model,
    make_project,
    make_promotion,
    make_trials,
    make_worker,
)
from tests.people import People

pytestmark = pytest.mark.django_db

ENUM_FILTERS = [
    ("/jobs", "state"),
    ("/jobs", "kind"),
    ("/experiments", "state"),
    ("/experiments", "archived"),
    ("/datasets", "source"),
    ("/promotions", "state"),
    ("/workers", "state"),
]


@pytest.mark.parametrize(("path", "name"), ENUM_FILTERS)
@pytest.mark.parametrize("value", ["bogus", "", "RUNNING"])
def test_an_unknown_value_of_a_filter_is_422_at_the_filter(
    people: People, call: Any, path: str, name: str, value: str
) -> None:
    answer = call(people.administrator).get(path, **{name: value})
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, f"/{name}")


@pytest.mark.parametrize(
    ("path", "name", "value"),
    [
        ("/jobs", "state", "running"),
        ("/jobs", "kind", "ensemble"),
        ("/experiments", "state", "failed"),
        ("/datasets", "source", "upload"),
        ("/promotions", "state", "pending"),
        ("/workers", "state", "lost"),
    ],
)
def test_a_known_value_of_a_filter_without_matches_is_an_empty_list(
    people: People, call: Any, path: str, name: str, value: str
) -> None:
    answer = call(people.member).get(path, **{name: value})
    assert (answer.status_code, answer.json()["items"]) == (200, [])


def test_jobs_are_filtered_by_state_and_kind(people: People, call: Any) -> None:
    failed_training = make_job(project=people.project, by=people.member, kind="train", state="failed")
    make_job(project=people.project, by=people.member, kind="train", state="running")
    make_job(project=people.project, by=people.member, kind="search", state="failed")
    jobs = call(people.member).get("/jobs", state="failed", kind="train").json()["items"]
    assert [job["id"] for job in jobs] == [failed_training.pk]


def test_a_list_reads_all_children_in_one_query_and_only_the_columns_it_needs(
    people: People, call: Any
) -> None:
    spec = SEARCH | {"after": {"retrain": {"top": 3}, "ensemble": {}}}
    experiment = make_experiment(project=people.project, by=people.owner, spec=spec)
    job = make_job(experiment=experiment, by=people.owner, state="running")
    make_trials(job, 1)
    job.trials.update(finished=timezone.now())  # so that the remaining time is estimated
    caller, queries = call(people.owner), []
    for ordinal, state in enumerate(("completed", "running", "running"), start=1):
        child: dict[str, Any] = {
            "kind": "train",
            "parent": job,
            "ordinal": ordinal,
            "results": {"metrics": {"test": {}}},
        }
        make_job(experiment=experiment, by=people.owner, state=state, **child)
        with CaptureQueriesContext(connection) as asked:
            (job_out,) = caller.get("/jobs", kind="search").json()["items"]
        queries.append([query["sql"] for query in asked])
    assert [step["state"] for step in job_out["steps"]] == [
        "completed",
        "completed",
        "running",
        "running",
        None,
    ]
    assert len(queries[2]) == len(queries[1])
    (children,) = (sql for sql in queries[2] if '"jobs_job"."parent_id" IN' in sql)
    assert '"results"' in children and '"payload"' not in children


def test_the_artifacts_of_many_jobs_are_read_with_as_many_queries_as_of_one(
    people: People, call: Any
) -> None:
    caller, queries = call(people.owner), []
    caller.get("/jobs")  # the first use of a token is recorded
    for count in (1, 3):
        for _ in range(count):
            job = make_job(project=people.project, by=people.owner, kind="train", state="completed")
            child = make_job(project=people.project, by=people.owner, kind="ensemble", parent=job)
            make_job_artifact(job, name="a")
            make_job_artifact(child, name="b")
        with CaptureQueriesContext(connection) as asked:
            items = caller.get("/jobs").json()["items"]
        queries.append(len(asked))
        names = {
            item["id"]: [artifact["name"] for artifact in item["results"]["artifacts"]] for item in items
        }
        assert (names[job.pk], names[child.pk]) == (["a", "b"], ["b"])
    assert queries[0] == queries[1]


def test_many_trials_are_listed_with_as_many_queries_as_few(people: People, call: Any) -> None:
    job = make_job(experiment=make_experiment(project=people.project, by=people.owner), by=people.owner)
    for trial in make_trials(job, 4):
        for step in (10, 20, 30):
            checkpoint = {"trial": trial, "execution": 1, "attempt": 1, "step": step, "epoch": step // 10}
            Checkpoint.objects.create(job=job, folder=f"{trial.number}/{step}", bytes=1, **checkpoint)
    Checkpoint.objects.filter(step=30).update(removed=timezone.now())
    caller, counts = call(people.owner), set()
    caller.get("/me")
    for most in (1, 3):
        with CaptureQueriesContext(connection) as asked:
            trials = caller.get(f"/jobs/{job.pk}/trials", limit=most).json()["items"]
        counts.add(len(asked))
        assert [trial["checkpoint"]["step"] for trial in trials] == [20] * most
    assert len(counts) == 1


def test_many_versions_projects_and_workers_are_listed_with_as_many_queries_as_few(
    people: People, call: Any
) -> None:
    dataset = make_dataset("flowers", project=people.project, by=people.owner)
    for number in (2, 3):
        dataset.versions.create(number=number, state="ready")
    for version in dataset.versions.all():
        make_job(
            project=people.project,
            by=people.owner,
            kind="profile",
            payload={"dataset_version": version.pk},
        )
    for name in ("a", "b"):
        make_project(name, owner=people.owner)
        make_worker(name)
    caller = call(people.owner)
    caller.get("/me")
    of_project = {"project": people.project.slug}
    for path, filters in (("/datasets/flowers/versions", of_project), ("/projects", {}), ("/workers", {})):
        counts = set()
        for most in (1, 2):
            with CaptureQueriesContext(connection) as asked:
                items = caller.get(path, limit=most, **filters).json()["items"]
            assert len(items) == most
            counts.add(len(asked))
        assert len(counts) == 1, path


def test_experiments_without_jobs_are_found(people: People, call: Any) -> None:
    ran, fresh = (make_experiment(project=people.project, by=people.member) for _ in range(2))
    make_job(experiment=ran, by=people.member)
    experiments = call(people.member).get("/experiments", state="none").json()["items"]
    assert [experiment["id"] for experiment in experiments] == [fresh.pk]


def test_the_artifacts_of_a_job_are_paginated(people: People, call: Any) -> None:
    caller, job = call(people.member), make_job(project=people.project, by=people.member)
    child = make_job(project=people.project, by=people.member, kind="ensemble", parent=job)
    names = [make_job_artifact(row, name=name).name for row, name in ((job, "a"), (child, "b"), (job, "c"))]
    path = f"/jobs/{job.pk}/artifacts"
    first = caller.get(path, limit=2).json()
    second = caller.get(path, limit=2, cursor=first["next"]).json()
    assert [row["name"] for row in first["items"] + second["items"]] == names
    assert (len(first["items"]), second["next"]) == (2, None)
    assert caller.get(path, cursor="x").status_code == 422


def test_of_artifacts_with_the_same_name_only_the_newest_is_listed(people: People, call: Any) -> None:
    job = make_job(project=people.project, by=people.member)
    old, new, other = (make_job_artifact(job, name=name) for name in ("a", "again", "b"))
    type(new).objects.filter(pk=new.pk).update(attempt=2, name="a")
    artifacts = call(people.member).get(f"/jobs/{job.pk}/artifacts").json()["items"]
    assert [row["digest"] for row in artifacts] == [new.artifact_id, other.artifact_id]
    assert old.artifact_id not in {row["digest"] for row in artifacts}


def test_the_newest_log_lines_are_found_despite_many_later_metric_events(people: People, call: Any) -> None:
    job = make_job(project=people.project, by=people.member)

    def append(number: int, trial: int) -> None:
        line = events.event("log", job, trial=trial, level="info", source="runner", line=f"line {number}")
        metric = events.event(
            "metric", job, trial=trial, execution=1, x="epoch", points=[["loss", 1, 0.5, 0]]
        )
        events.append(job.pk, [line, line | {"line": f"more {number}"}, metric])

    for number in range(5):
        append(number, trial=1 + number % 2)
    events.append(job.pk, [events.event("metric", job, x="epoch", points=[])] * 4000)

    def lines(**asked: Any) -> list[str]:
        logs = call(people.member).get(f"/jobs/{job.pk}/logs", newest=True, **asked).json()
        assert logs["cursor"] == job_head(job)
        return [event["line"] for event in logs["items"]]

    assert lines(limit=3) == ["more 3", "line 4", "more 4"]
    assert lines(trial=2) == ["line 1", "more 1", "line 3", "more 3"]
    assert lines(q="LINE", limit=2) == ["line 3", "line 4"]
    assert lines(level="error") == []


def job_head(job: Job) -> int:
    return Job.objects.values_list("event_seq", flat=True).get(pk=job.pk)


def test_the_document_lists_the_values_of_a_filter(call: Any, people: People) -> None:
    document = call(people.member).get("/openapi.json").json()
    parameters = document["paths"]["/api/v1/workers"]["get"]["parameters"]
    state = next(parameter for parameter in parameters if parameter["name"] == "state")
    assert {"enum": ["up", "draining", "lost", "gone"], "type": "string"} in state["schema"]["anyOf"]


@pytest.mark.parametrize("path", ["/models", "/promotions"])
def test_the_queries_of_a_list_of_the_registry_do_not_depend_on_its_length(
    people: People, call: Any, path: str
) -> None:
    caller = call(people.member)
    caller.get("/me")  # the first use of a token is recorded
    counts = []
    for length in (1, 2, 3):
        model = make_model(project=people.project, by=people.member)
        version = model.versions.get()
        model.aliases.create(name="best", version=version)
        promotion = make_promotion(version, by=people.member)
        promotion.decisions.create(user=people.owner, verdict="comment", comment="Why?")
        with CaptureQueriesContext(connection) as queries:
            items = caller.get(path).json()["items"]
        assert len(items) == length
        counts.append(len(queries))
    assert len(set(counts)) == 1
