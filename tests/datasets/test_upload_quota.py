"""A project has a bounded number of uploads in progress, and their bytes count before their rows exist."""

import os
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test import Client

from jobs import clock
from jobs.actions.data import datasets, uploads
from jobs.errors import QuotaReached
from jobs.models import DatasetVersion, Project, UploadReservation
from jobs.queries.people import quotas
from jobs.queries.storage import disk_use
from tests.datasets.test_api import CSV, call_while_storing, send
from tests.datasets.test_disk_quota import limit
from tests.world import World

ROOT = Path(__file__).resolve().parents[2]
SIZE = len(CSV)
READY = DatasetVersion.State.READY


@pytest.fixture
def api(world: World) -> Client:
    return world.client(world.owner)


def allow(project: Project, **limits: int) -> None:
    Project.objects.filter(pk=project.pk).update(**limits)
    project.refresh_from_db()
    disk_use.forget_recent_bytes()


def test_an_upload_beyond_the_quota_is_refused_with_quota_use_and_remedy(api: Client, world: World) -> None:
    allow(world.project, max_uploads=1)
    assert send(api).status_code == 201
    refused = send(api, slug="more", content=CSV + b"1,2,3\n")
    assert (refused.status_code, refused.json()["code"]) == (409, "quota_reached")
    assert "has 1 uploads that are received or prepared, and its quota is 1" in refused.json()["detail"]
    assert "Wait until some of them are ready" in refused.json()["detail"]
    assert not DatasetVersion.objects.filter(dataset__slug="more").exists()
    DatasetVersion.objects.filter(dataset__slug="people").update(state=READY)
    assert send(api, slug="more").status_code == 201


def test_a_project_with_too_many_uploads_stops_no_other(world: World) -> None:
    uploads.reserve(world.project, 1)
    allow(world.project, max_uploads=1)
    with pytest.raises(QuotaReached):
        uploads.reserve(world.project, 1)
    assert send(world.client(world.stranger), project="elsewhere").status_code == 201


def test_two_uploads_that_do_not_fit_together_are_not_both_accepted(
    api: Client, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit(world.project, 2 * SIZE - 1)
    answers: list[Any] = []

    def send_another() -> None:
        monkeypatch.undo()
        answers.append(send(api, slug="more", content=CSV[::-1]))

    call_while_storing(monkeypatch, send_another)
    assert send(api).status_code == 201
    (refused,) = answers
    assert (refused.status_code, refused.json()["code"]) == (409, "quota_reached")
    assert f"use {SIZE} bytes of its {2 * SIZE - 1} bytes of disk" in refused.json()["detail"]


def test_an_upload_counts_as_used_until_its_request_ends(
    api: Client, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Any] = []
    call_while_storing(monkeypatch, lambda: seen.append(quotas.quotas_out(world.project)))
    assert send(api).status_code == 201
    assert [(quota.bytes.used, quota.uploads.used) for quota in seen] == [(SIZE, 1)]
    assert not UploadReservation.objects.exists()


@pytest.mark.parametrize("key", ["", "once"])
def test_a_refused_upload_counts_no_longer(api: Client, world: World, key: str) -> None:
    assert send(api, sha256="0" * 64, key=key).status_code == 422
    assert send(api, key=key and "twice").status_code == 201
    assert send(api, key=key and "thrice").status_code == 409  # the slug is taken
    assert not UploadReservation.objects.exists()


def test_a_reservation_gets_the_exact_size_of_its_file(world: World) -> None:
    limit(world.project, 100)
    held = uploads.reserve(world.project, 60)
    assert uploads.reserve(world.project, 100, held=held) == held
    with pytest.raises(QuotaReached, match="needs 101 bytes more"):
        uploads.reserve(world.project, 101, held=held)
    assert UploadReservation.objects.get().bytes == 100


def test_a_renewed_reservation_is_kept_and_one_that_was_left_behind_is_forgotten(world: World) -> None:
    allow(world.project, max_uploads=2)
    renewed, left = uploads.reserve(world.project, 1), uploads.reserve(world.project, 1)
    UploadReservation.objects.update(until=clock.now() - timedelta(seconds=1))
    uploads.renew(renewed, 30)
    uploads.reserve(world.project, 1)
    assert UploadReservation.objects.get(pk=renewed).bytes == 30
    assert not UploadReservation.objects.filter(pk=left).exists()
    assert quotas.quotas_out(world.project).uploads.used == 2


def test_other_roles_of_a_file_are_refused_while_too_many_are_prepared(api: Client, world: World) -> None:
    version = DatasetVersion.objects.get(dataset__slug=send(api).json()["slug"])
    allow(world.project, max_uploads=1)
    with pytest.raises(QuotaReached):
        datasets.set_roles(version, datasets.Roles(target="age"), by=world.owner)
    DatasetVersion.objects.update(state=READY)
    assert datasets.set_roles(version, datasets.Roles(target="age"), by=world.owner).number == 2


@pytest.mark.django_db(transaction=True)  # another process writes
@pytest.mark.skipif(
    connection.vendor != "sqlite", reason="the other process opens the test's SQLite database"
)
def test_an_upload_whose_server_was_killed_is_forgotten_after_its_lease(world: World, tmp_path: Path) -> None:
    allow(world.project, max_uploads=1)
    environment = os.environ | {
        "TRAINYARD_HOME": str(tmp_path),
        "TRAINYARD_DATABASE_URL": f"sqlite:///{connection.settings_dict['NAME']}",
        "TRAINYARD_ARTIFACTS": str(tmp_path / "artifacts"),
        "DJANGO_SETTINGS_MODULE": "webapp.settings.main",
    }
    command = [sys.executable, "-m", "tests.datasets.upload_kill"]
    killed = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert UploadReservation.objects.get().bytes == len(b"a,b\n1,2\n")
    assert send(world.client(world.owner)).json()["code"] == "quota_reached"
    assert send(world.client(world.stranger), project="elsewhere").status_code == 201
    UploadReservation.objects.update(until=clock.now())
    assert send(world.client(world.owner)).status_code == 201
    assert not UploadReservation.objects.exists()
    assert DatasetVersion.objects.filter(dataset__project=world.project).count() == 1
