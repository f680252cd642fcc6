"""A project has a bounded number of bytes, and one at its quota does not affect the others."""

from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from jobs.actions.people import quotas
from jobs.errors import QuotaReached
from jobs.models import Artifact, DatasetVersion, Job, Project, RegisteredModel
from jobs.queries.storage import disk_use, storage
from tests.datasets.test_api import CSV, send
from tests.world import World

SIZE = len(CSV)


@pytest.fixture
def api(world: World) -> Client:
    return world.client(world.owner)


def limit(project: Project, size: int) -> None:
    Project.objects.filter(pk=project.pk).update(max_bytes=size)
    disk_use.forget_recent_bytes()


def without_events(project: Project) -> None:
    """Forget the few bytes in each job's first events, so that the tests can name exact sizes."""
    Job.objects.filter(project=project).update(event_bytes=0)
    disk_use.forget_recent_bytes()


def test_an_upload_that_does_not_fit_is_refused_with_quota_use_and_remedy(api: Client, world: World) -> None:
    limit(world.project, SIZE + 10)
    assert send(api).status_code == 201
    without_events(world.project)
    refused = send(api, slug="more", content=CSV + b"1,2,3\n")
    assert (refused.status_code, refused.json()["code"]) == (409, "quota_reached")
    detail = refused.json()["detail"]
    assert (
        f"use {SIZE} bytes of its {SIZE + 10} bytes of disk, and this needs {SIZE + 6} bytes more" in detail
    )
    assert "Delete data, jobs or models" in detail
    assert not DatasetVersion.objects.filter(dataset__slug="more").exists()
    assert not Artifact.objects.filter(bytes=SIZE + 6).exists()


def test_uploads_at_the_same_time_do_not_exceed_it_together(
    api: Client, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit(world.project, SIZE)
    # Both saw an empty project before they stored their files.
    monkeypatch.setattr(quotas, "require_room_on_disk", lambda project, adding: None)
    assert send(api).status_code == 201
    refused = send(api, slug="more", content=CSV + b"1,2,3\n")
    assert (refused.status_code, refused.json()["code"]) == (409, "quota_reached")
    assert not DatasetVersion.objects.filter(dataset__slug="more").exists()


def test_a_file_that_the_project_has_needs_no_space(api: Client, world: World) -> None:
    limit(world.project, 2 * SIZE - 1)
    stored = send(api).json()
    without_events(world.project)
    row = DatasetVersion.objects.get(dataset__slug=stored["slug"])
    assert row.upload is not None
    quotas.require_room_for_artifact(world.project, row.upload)
    assert disk_use.bytes_of_project(world.project.pk) == SIZE


def test_a_full_project_stops_no_other(world: World) -> None:
    limit(world.project, 1)
    stranger = world.client(world.stranger)
    assert send(stranger, project="elsewhere").status_code == 201


def test_a_full_project_can_queue_no_job(world: World) -> None:
    limit(world.project, 0)
    with pytest.raises(QuotaReached, match="of disk"):
        quotas.require_room_for_job(world.project)


def test_a_model_that_does_not_fit_is_refused(api: Client, world: World) -> None:
    limit(world.project, 10)
    RegisteredModel.objects.create(name="m", project=world.project)
    form = {"file": SimpleUploadedFile("m.keras", b"PK\x03\x04" + bytes(20))}
    refused = api.post("/api/v1/models/m/versions", form)
    assert (refused.status_code, refused.json()["code"]) == (409, "quota_reached")


def test_the_use_is_that_of_the_storage_page(api: Client, world: World) -> None:
    send(api)
    project: Any = next(row for row in storage.storage_of_user(world.owner).projects if row.project == "yard")
    events = Job.objects.get(project=world.project).event_bytes
    assert project.events == events > 0
    assert project.bytes == disk_use.bytes_of_project(world.project.pk) == SIZE + events
