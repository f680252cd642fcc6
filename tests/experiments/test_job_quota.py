"""A project has a bounded number of unfinished jobs, and one at its quota does not affect the others."""

from typing import Any

import pytest
from django.test import Client

from jobs.actions.quotas import require_room_for_job
from jobs.models import Job, Project
from jobs.states import JobState
from tests.experiments.conftest import World
from tests.experiments.test_api import make, post


@pytest.fixture
def api(world: World, settings: Any) -> Client:
    settings.TRAINYARD_PROJECT_JOBS = 1
    return world.client(world.owner)


def test_a_job_beyond_the_quota_is_refused_with_quota_use_and_remedy(
    api: Client, spec: dict[str, Any]
) -> None:
    made = make(api, spec)
    assert post(api, f"/experiments/{made['id']}/submit").status_code == 202
    refused = post(api, f"/experiments/{made['id']}/submit")
    assert (refused.status_code, refused.json()["code"]) == (409, "quota_reached")
    assert "has 1 unfinished jobs, and its quota is 1. Stop some of them" in refused.json()["detail"]
    assert Job.objects.filter(experiment=made["id"]).count() == 1


def test_a_finished_job_and_the_steps_of_a_job_need_no_room(api: Client, spec: dict[str, Any]) -> None:
    made = make(api, spec)
    post(api, f"/experiments/{made['id']}/submit")
    root = Job.objects.get(experiment=made["id"])
    Job.objects.filter(pk=root.pk).update(state=JobState.COMPLETED)
    assert post(api, f"/experiments/{made['id']}/submit").status_code == 202
    Job.objects.filter(experiment=made["id"], state=JobState.QUEUED).update(parent=root, ordinal=1)
    assert post(api, f"/experiments/{made['id']}/submit").status_code == 202


def test_another_project_can_still_submit(api: Client, spec: dict[str, Any], world: World) -> None:
    made = make(api, spec)
    post(api, f"/experiments/{made['id']}/submit")
    other = Project.objects.create(slug="other", name="Other", created_by=world.owner)
    require_room_for_job(other)
