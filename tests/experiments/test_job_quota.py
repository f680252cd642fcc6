"""A project has a bounded number of unfinished jobs, and one at its quota does not affect the others."""

from typing import Any

import pytest
from django.test import Client

from jobs.actions.data.profiles import profile_again
from jobs.actions.people.quotas import require_room_for_job
from jobs.errors import QuotaReached
from jobs.models import DatasetVersion, Job, Project
from jobs.states import JobState
from tests.datasets.test_api import send
from tests.experiments.test_api import make, post
from tests.world import World


@pytest.fixture
def api(world: World, settings: Any) -> Client:
    settings.TRAINYARD_PROJECT_JOBS = 1
    return world.client(world.owner)


def test_a_job_beyond_the_quota_is_refused_with_quota_use_and_remedy(
    api: Client, spec: dict[str, Any]
) -> None:
    experiment = make(api, spec)
    assert post(api, f"/experiments/{experiment['id']}/submit").status_code == 202
    refused = post(api, f"/experiments/{experiment['id']}/submit")
    assert (refused.status_code, refused.json()["code"]) == (409, "quota_reached")
    assert "has 1 unfinished jobs, and its quota is 1. Stop some of them" in refused.json()["detail"]
    assert Job.objects.filter(experiment=experiment["id"]).count() == 1


def test_a_finished_job_and_the_steps_of_a_job_need_no_room(api: Client, spec: dict[str, Any]) -> None:
    experiment = make(api, spec)
    post(api, f"/experiments/{experiment['id']}/submit")
    root = Job.objects.get(experiment=experiment["id"])
    Job.objects.filter(pk=root.pk).update(state=JobState.COMPLETED)
    assert post(api, f"/experiments/{experiment['id']}/submit").status_code == 202
    Job.objects.filter(experiment=experiment["id"], state=JobState.QUEUED).update(parent=root, ordinal=1)
    assert post(api, f"/experiments/{experiment['id']}/submit").status_code == 202


def test_another_project_can_still_submit(api: Client, spec: dict[str, Any], world: World) -> None:
    experiment = make(api, spec)
    post(api, f"/experiments/{experiment['id']}/submit")
    other = Project.objects.create(slug="other", name="Other", created_by=world.owner)
    require_room_for_job(other)


def test_a_retry_needs_room_like_a_new_job(api: Client, spec: dict[str, Any]) -> None:
    experiment = make(api, spec)
    post(api, f"/experiments/{experiment['id']}/submit")
    first = Job.objects.get(experiment=experiment["id"])
    Job.objects.filter(pk=first.pk).update(state=JobState.FAILED)
    post(api, f"/experiments/{experiment['id']}/submit")
    second = Job.objects.get(experiment=experiment["id"], state=JobState.QUEUED)
    refused = post(api, f"/jobs/{first.pk}/retry")
    assert (refused.status_code, refused.json()["code"]) == (409, "quota_reached")
    assert Job.objects.get(pk=first.pk).state == JobState.FAILED
    Job.objects.filter(pk=second.pk).update(state=JobState.COMPLETED)
    assert post(api, f"/jobs/{first.pk}/retry").status_code == 202
    Job.objects.filter(pk=second.pk).update(state=JobState.FAILED)
    assert post(api, f"/jobs/{second.pk}/retry").status_code == 409


def test_a_job_that_runs_is_refused_as_such_and_not_for_its_quota(api: Client, spec: dict[str, Any]) -> None:
    experiment = make(api, spec)
    post(api, f"/experiments/{experiment['id']}/submit")
    refused = post(api, f"/jobs/{Job.objects.get(experiment=experiment['id']).pk}/retry")
    assert (refused.status_code, refused.json()["code"]) == (409, "stale_state")


def test_a_failed_data_set_is_read_again_only_if_there_is_room_for_its_job(api: Client, world: World) -> None:
    version = DatasetVersion.objects.get(dataset__slug=send(api).json()["slug"])
    version.state = DatasetVersion.State.FAILED
    version.save(update_fields=["state"])
    with pytest.raises(QuotaReached, match="has 1 unfinished jobs"):
        profile_again(version, by=world.owner)
    assert DatasetVersion.objects.get(pk=version.pk).state == DatasetVersion.State.FAILED
