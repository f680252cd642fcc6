"""Payloads: rows from earlier versions can be read, and concurrent changes are kept."""

from dataclasses import replace
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import pytest
from django.apps import apps
from django.db import connection

from jobs.actions.runs import attempt_end, schedule
from jobs.actions.runs.payloads import change_payload
from jobs.errors import Conflict
from jobs.kinds import KINDS, facts_by_payload, payload_of
from jobs.kinds.search.payload import SearchPayload
from jobs.kinds.train.payload import TrainPayload
from jobs.models import Job
from jobs.queries.search import outcomes
from jobs.states import Outcome
from tests.jobs.yard import SEARCH, PretendWorker, Yard
from tests.present import present

FAILING = {"code": "internal", "message": "a bug", "traceback": "Traceback"}
SPACE = [{"name": "x", "kind": "float", "min": 0.0, "max": 1.0}]
OUTSIDE = {
    "algorithm": "random", "metric": "default_objective", "direction": "min", "max_trials": 4,
    "max_consecutive_failures": 3, "seed": 0, "space": SPACE, "told": [["x"]], "lease_seconds": 21600.0,
}  # fmt: skip

WRITTEN: list[tuple[str, dict[str, Any]]] = [
    ("search", {"dataset_version": 4}),
    ("search", {"dataset_version": 4, "failing": FAILING}),
    ("search", {"dataset_version": 4, "exhausted": True, "first_revision": 7, "beyond_space": 0}),
    ("search", {"dataset_version": 4, "nothing_for": "completed:3:2026-11-22 23:23:02+00:00"}),
    ("external_search", {"outside": OUTSIDE}),
    ("external_search", {"outside": OUTSIDE, "address": {"host": "127.0.0.1", "port": 33417}}),
    ("external_search", {"outside": OUTSIDE, "exhausted": True, "failing": FAILING}),
    ("train", {"dataset_version": 4, "task_done": True}),
    ("train", {"dataset_version": 4, "trial": 2, "values": {"units": 16, "learning_rate": 0.009}}),
    ("ensemble", {"dataset_version": 4, "members": [9, 10], "task_done": True}),
    ("chosen_ensemble", {"search": 8, "chosen": [{"trial": 2, "values": {"units": 16}}], "task_done": True}),
    ("quantize", {"dataset_version": 4, "source": 11, "task_done": True}),
    ("register", {"dataset_version": 4, "version": 1, "task_done": True}),
    ("register", {"version": 1}),
    ("gate", {"promotion": 1, "task_done": True}),
    ("profile", {"dataset_version": 1, "task_done": True}),
]
"""Payloads of each kind that were written before payloads had types."""


@pytest.mark.parametrize(("kind", "body"), WRITTEN)
def test_untyped_rows_of_earlier_versions_are_read_without_changes(kind: str, body: dict[str, Any]) -> None:
    payload = payload_of(kind, body)
    dumped = payload.model_dump(mode="json")
    assert {name: dumped[name] for name in body if name != "outside"} == {
        name: value for name, value in body.items() if name != "outside"
    }
    assert payload_of(kind, payload.to_json()) == payload


def test_a_payload_is_written_without_default_values() -> None:
    assert payload_of("search", {"dataset_version": 4}).to_json() == {"dataset_version": 4}
    changed = payload_of("search", {"dataset_version": 4}).changed(beyond_space=0)
    assert changed.to_json() == {"dataset_version": 4, "beyond_space": 0}


def test_a_field_that_no_kind_knows_is_refused() -> None:
    with pytest.raises(ValueError, match="valeus"):
        payload_of("train", {"valeus": {}})


def test_a_change_of_one_field_keeps_concurrent_changes_of_others(installation: Yard) -> None:
    job = installation.submit(search=SEARCH)
    mine, other = Job.objects.get(pk=job.pk), Job.objects.get(pk=job.pk)
    assert not mine.payload.failing  # read before the change, and out of date after it
    change_payload(other, exhausted=True)
    change_payload(mine, failing={"code": "x", "message": "y"})
    for seen in (mine, Job.objects.get(pk=job.pk)):
        assert seen.payload_as(SearchPayload).exhausted
        assert seen.payload.failing == {"code": "x", "message": "y"}


def test_a_payload_asked_for_as_that_of_another_kind_is_refused(installation: Yard) -> None:
    with pytest.raises(Conflict, match="of kind search"):
        installation.submit(search=SEARCH).payload_as(TrainPayload)


def test_an_invalid_result_fails_the_job(installation: Yard, worker: PretendWorker) -> None:
    job = installation.submit()
    schedule.place_jobs()
    (attempt,) = worker.claim_all()
    attempt_end.finish(attempt.pk, Outcome.COMPLETED, result={"metrics": "good"})
    job.refresh_from_db()
    assert (job.state, present(job.error)["code"]) == ("failed", "bad_result")


def test_two_kinds_cannot_have_one_payload_class() -> None:
    train, gate = KINDS["train"], KINDS["gate"]
    with pytest.raises(ValueError, match="train and gate have the payload class TrainPayload"):
        facts_by_payload([train, replace(gate, payload=train.payload)])


def test_the_migration_of_kinds_is_reversible(
    installation: Yard,
) -> None:
    ours = installation.submit(search=SEARCH)
    theirs = Job.objects.create(
        project=installation.project, kind="search", payload_json={"outside": OUTSIDE}
    )
    step = Job.objects.create(parent=ours, kind="ensemble", payload_json={"members": [1, 2]})
    chosen = Job.objects.create(kind="ensemble", payload_json={"search": ours.pk, "chosen": []})
    migration = import_module("jobs.migrations.0012_kinds_of_jobs")
    editor: Any = SimpleNamespace(connection=connection)
    migration.name_kinds(apps, editor)
    kinds = [Job.objects.get(pk=job.pk).kind for job in (ours, theirs, step, chosen)]
    assert kinds == ["search", "external_search", "ensemble", "chosen_ensemble"]
    assert outcomes.search_of(Job.objects.get(pk=theirs.pk)).max_trials == 4
    migration.unname_kinds(apps, editor)
    kinds = [Job.objects.get(pk=job.pk).kind for job in (ours, theirs, step, chosen)]
    assert kinds == ["search", "search", "ensemble", "ensemble"]
