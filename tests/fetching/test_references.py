"""A reference keeps a file's address and digest, and a changed file is noticed."""

import hashlib
from pathlib import Path
from typing import Any

import pytest

from jobs.actions.data import profiles
from jobs.actions.data.dataset_roles import set_roles
from jobs.actions.data.datasets import Roles
from jobs.models import DatasetVersion, Fetch
from jobs.queries.storage import disk_use, references
from tests.datasets.making import SHOP, make_ready
from tests.fetching.making import CSV, ask, error_of, fetch, row_of
from tests.fetching.servers import Server, file, serving
from tests.world import World

DIGEST = hashlib.sha256(CSV).hexdigest()


@pytest.fixture(autouse=True)
def own_store(tmp_path: Path, settings: Any) -> None:
    settings.TRAINYARD_ARTIFACTS = str(tmp_path / "artifacts")


def ready_reference(world: World, server: Server, allow: Any) -> DatasetVersion:
    """Make a reference to the file of a server that is ready."""
    allow("127.0.0.1", server.port)
    version = fetch(ask(world, f"http://127.0.0.1:{server.port}/people.csv", mode="reference"))
    assert version.upload_id == DIGEST  # a worker reads it
    make_ready(version, SHOP)
    return DatasetVersion.objects.get(pk=version.pk)


def test_a_reference_that_is_ready_keeps_address_size_tag_time_and_digest_but_no_file(
    world: World, allow: Any
) -> None:
    answer = file(CSV, 'ETag: "7"', "Last-Modified: Tue, 24 Nov 2026 10:00:00 GMT")
    with serving(answer) as server:
        version = ready_reference(world, server, allow)
    row = row_of(version)
    assert (version.state, version.upload) == ("ready", None)
    assert (row.received, row.etag, row.modified, row.sha256) == (
        len(CSV),
        '"7"',
        "Tue, 24 Nov 2026 10:00:00 GMT",
        DIGEST,
    )
    assert references.unreferenced_artifacts().filter(pk=DIGEST).exists()
    assert not references.mentioned_digests({DIGEST})
    disk_use.forget_recent_bytes()
    assert disk_use.bytes_of_project(world.project.pk) < 1000 + len(CSV)


def test_a_reference_whose_file_could_not_be_read_keeps_it_to_be_read_again(world: World, allow: Any) -> None:
    with serving(file(CSV)) as server:
        allow("127.0.0.1", server.port)
        version = fetch(ask(world, f"http://127.0.0.1:{server.port}/people.csv", mode="reference"))
    profiles.record_profile_failure(version.pk, {"code": "bad_data", "message": "bad"})
    assert DatasetVersion.objects.get(pk=version.pk).upload_id == DIGEST


def test_new_roles_of_a_reference_read_the_unchanged_file_again(world: World, allow: Any) -> None:
    with serving(file(CSV)) as server:
        version = ready_reference(world, server, allow)
        second = fetch(set_roles(version, Roles(target="bmi"), by=world.owner))
    assert (second.number, second.state, second.upload_id) == (2, "preparing", DIGEST)
    assert second.request["target"] == "bmi"
    assert row_of(second).mode == Fetch.Mode.REFERENCE


def test_a_changed_file_is_noticed_when_it_is_read_again(world: World, allow: Any) -> None:
    with serving(file(CSV)) as server:
        version = ready_reference(world, server, allow)
        server.answer = file(CSV + b"1,2,3\n")
        second = fetch(set_roles(version, Roles(target="bmi"), by=world.owner))
    error = error_of(second)
    assert error["code"] == "source_changed"
    assert error["message"].startswith(
        f"The file at the address has changed since v1: it had the sha256 {DIGEST}"
    )
    assert second.upload is None
    version.refresh_from_db()
    assert version.state == "ready"


def test_new_roles_of_a_reference_that_could_not_be_read_make_a_reference(world: World, allow: Any) -> None:
    with serving(file(CSV)) as server:
        allow("127.0.0.1", server.port)
        version = fetch(ask(world, f"http://127.0.0.1:{server.port}/people.csv", mode="reference"))
    profiles.record_profile_failure(version.pk, {"code": "bad_data", "message": "bad"})
    version.refresh_from_db()
    second = set_roles(version, Roles(target="bmi"), by=world.owner)
    assert second.upload_id == DIGEST
    make_ready(second, SHOP)
    second.refresh_from_db()
    assert (second.upload, row_of(second).mode) == (None, Fetch.Mode.REFERENCE)


def test_new_roles_of_a_copy_need_no_address(world: World, allow: Any) -> None:
    with serving(file(CSV)) as server:
        allow("127.0.0.1", server.port)
        version = fetch(ask(world, f"http://127.0.0.1:{server.port}/people.csv"))
        make_ready(version, SHOP)
    version.refresh_from_db()
    assert version.upload_id == DIGEST
    second = set_roles(version, Roles(target="bmi"), by=world.owner)
    assert (second.upload_id, row_of(second).state, row_of(second).shown) == (
        DIGEST,
        Fetch.State.DONE,
        row_of(version).shown,
    )


def test_the_page_of_a_reference_shows_what_is_kept_and_reads_it_again(world: World, allow: Any) -> None:
    client = world.client(world.owner)
    with serving(file(CSV)) as server:
        ready_reference(world, server, allow)
        page = " ".join(client.get("/datasets/people/versions/1?project=yard").content.decode().split())
        assert "a reference: the address and the digest of the file" in page and DIGEST in page
        answer = client.post(
            "/datasets/people/versions/1/roles?project=yard",
            {"column": ["id", "city", "bought", "price"], "role": ["id", "ignore", "feature", "target"],
             "type": ["integer", "category", "date", "number"]},
        )  # fmt: skip
    assert answer["Location"] == "/datasets/people/versions/2?project=yard"
    assert Fetch.objects.get(version__number=2, version__dataset__slug="people").expected_sha256 == DIGEST


def test_a_reference_is_asked_for_on_the_page(world: World) -> None:
    form = {"project": "yard", "url": "https://example.org/people.csv", "mode": "reference"}
    assert world.client(world.owner).post("/datasets/new?from=address", form).status_code == 303
    assert Fetch.objects.get().mode == "reference"
