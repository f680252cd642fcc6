"""A project over its quotas does not affect another's uploads, jobs and runs."""

from typing import Any

import pytest

from jobs.actions.data import uploads
from jobs.actions.runs import run_quotas, schedule
from jobs.messages import events as contract
from jobs.models import Attempt, DatasetVersion, Job, Membership, Project
from jobs.queries.people import quotas
from jobs.queries.storage import disk_use
from tests.datasets.test_api import send
from tests.experiments.test_api import post
from tests.jobs.yard import PretendWorker
from tests.world import World

LEAST: dict[str, int] = {"slots": 1, "bytes": 1, "jobs": 1, "uploads": 1, "events": 1}


@pytest.fixture
def full(world: World, spec: dict[str, Any]) -> Project:
    """The project "yard", with a run that sends many events, a waiting job and an upload in progress."""
    api = world.client(world.owner)
    for _ in range(2):
        submit(api, spec, "yard")
    PretendWorker(slots=1, name="first")
    DatasetVersion.objects.update(state=DatasetVersion.State.READY)
    Job.objects.filter(kind="profile").update(state="completed")
    schedule.place_jobs()
    run = Attempt.objects.get(job__project=world.project)
    Attempt.objects.filter(pk=run.pk).update(state="running", event_rate=10**9)
    uploads.reserve(world.project, 1000)
    return world.project


def submit(api: Any, spec: dict[str, Any], project: str) -> Any:
    experiment = post(api, "/experiments", {"project": project, "name": "e", "spec": spec}).json()
    return post(api, f"/experiments/{experiment['id']}/submit")


@pytest.mark.parametrize("names", [*([name] for name in LEAST), list(LEAST)], ids="-".join)
def test_a_project_over_its_quota_affects_no_other(
    world: World, spec: dict[str, Any], full: Project, names: list[str]
) -> None:
    Project.objects.filter(pk=full.pk).update(**{quotas.quota_column(name): LEAST[name] for name in names})
    full.refresh_from_db()
    disk_use.forget_recent_bytes()
    quotas_of_project = quotas.quotas_out(full)
    for name in names:
        quota = getattr(quotas_of_project, name)
        assert quota.used >= quota.limit, name
    stranger = world.client(world.stranger)
    elsewhere = Project.objects.get(slug="elsewhere")
    assert send(stranger, project="elsewhere").status_code == 201
    assert submit(stranger, spec, "elsewhere").status_code == 202
    worker = PretendWorker(slots=2, name="second")
    schedule.place_jobs()
    claimed = {attempt.job.project_id: attempt for attempt in worker.claim_all()}
    run = claimed[elsewhere.pk]
    worker.report(run, contract.Started(time=1.0), contract.Log(time=1.0, line="x"))
    run_quotas.require_within_disk(run.pk)
    assert run_quotas.share_events(run.pk, 0) == quotas.default_quotas().events
    waiting = Job.objects.filter(project=full, state="queued").exclude(why_waiting="")
    assert waiting.exists() == bool({"slots", "bytes"} & set(names))


def test_a_person_of_both_projects_is_refused_in_one_of_them_only(
    world: World, spec: dict[str, Any], full: Project
) -> None:
    Project.objects.filter(pk=full.pk).update(max_jobs=1, max_uploads=1)
    Membership.objects.create(project=Project.objects.get(slug="elsewhere"), user=world.owner, role="member")
    api = world.client(world.owner)
    assert (send(api).status_code, submit(api, spec, "yard").status_code) == (409, 409)
    there = send(api, project="elsewhere"), submit(api, spec, "elsewhere")
    assert [answer.status_code for answer in there] == [201, 202]
