"""Requests for fetches: refusals, credentials, cancelled and repeated fetches."""

import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from django.db import connection, connections, transaction

from jobs import clock
from jobs.actions.data import credentials, fetch_attempts, fetches
from jobs.actions.storage import deletions, purge
from jobs.errors import BadInput, Conflict, FetchFailed, Forbidden, NotFound
from jobs.fetching.download import Copying, run
from jobs.models import AuditEvent, Credential, Deletion, Fetch, Project
from jobs.sources.base import Source
from jobs.spec.data.credentials import CREDENTIAL
from jobs.spec.data.fetching import FetchRequest
from jobs.store import store
from tests.fetching.making import CSV, ask, claim, error_of, fetch, make_admin, row_of
from tests.fetching.servers import file, serving
from tests.fetching.test_fetches import State, files_in
from tests.world import World


@pytest.fixture
def stored(tmp_path: Path, settings: Any) -> Path:
    """Give the test a store of its own, and return its folder."""
    settings.TRAINYARD_ARTIFACTS = str(tmp_path / "artifacts")
    return tmp_path / "artifacts"


def test_a_cancelled_fetch_keeps_nothing(world: World, stored: Path) -> None:
    def blocks() -> Iterator[bytes]:
        yield CSV
        fetches.cancel(version, by=world.owner)
        yield CSV

    version = ask(world, "https://example.org/people.csv")
    copying = Copying(claim(), Source(None, blocks()))
    with pytest.raises(fetch_attempts.NotHeld):
        store().put_blocks(copying.blocks())
    assert error_of(version)["code"] == "cancelled"
    assert not files_in(stored)
    with pytest.raises(Conflict):
        fetches.cancel(version, by=world.owner)


def a_transaction_waits() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
        return bool(cursor.fetchone()[0])


@pytest.mark.django_db(transaction=True)  # two connections
@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite has one writer at a time")
def test_a_fetch_that_is_cancelled_while_its_process_reports_stays_cancelled(world: World) -> None:
    version = ask(world, "https://example.org/people.csv")
    claimed, outcome = claim(), []

    def renew() -> None:
        try:
            fetch_attempts.renew(claimed, received=1, total=None)
            outcome.append("renewed")
        except fetch_attempts.NotHeld:
            outcome.append("not held")
        finally:
            connections.close_all()

    reporting = Thread(target=renew)
    with transaction.atomic():
        fetches.cancel(version, by=world.owner)
        reporting.start()
        deadline = time.monotonic() + 60
        while not a_transaction_waits() and time.monotonic() < deadline:
            time.sleep(0.01)
    reporting.join(60)
    assert (outcome, row_of(version).received) == (["not held"], 0)


def test_a_process_that_lost_its_fetch_changes_nothing(world: World, stored: Path) -> None:
    version = ask(world, "https://example.org/people.csv")
    late = claim()
    Fetch.objects.update(until=clock.now() - timedelta(seconds=1))
    fetch_attempts.reap_fetches()
    owner = claim()
    assert owner.fence > late.fence
    file_ = store().put_blocks([CSV])
    with pytest.raises(fetch_attempts.NotHeld):
        fetch_attempts.renew(late, received=1, total=1)
    with pytest.raises(fetch_attempts.NotHeld):
        fetch_attempts.reserve(late, 1)
    with pytest.raises(fetch_attempts.NotHeld):
        fetch_attempts.complete(late, file_, etag="", modified="")
    fetch_attempts.fail(late, FetchFailed("late"))
    assert row_of(version).state == State.RUNNING
    fetch_attempts.complete(owner, file_, etag="", modified="")
    assert row_of(version).state == State.DONE


def test_a_fetch_whose_process_is_lost_three_times_fails(world: World) -> None:
    version = ask(world, "https://example.org/people.csv")
    for _ in range(3):
        fetch_attempts.process_ended(claim())
    assert error_of(version)["code"] == "process_lost"
    assert not fetch_attempts.claim_waiting()


def test_a_failed_fetch_can_be_repeated(world: World, stored: Path, site: Any) -> None:
    with site(file(b"", status="503 Unavailable")) as url:
        version = fetch(ask(world, url))
    with pytest.raises(Forbidden):
        fetches.fetch_again(version, by=world.viewer)
    fetches.fetch_again(version, by=world.owner)
    version.refresh_from_db()
    assert (version.state, version.error) == ("preparing", None)
    assert row_of(version).state == State.WAITING
    with pytest.raises(Conflict):
        fetches.fetch_again(version, by=world.owner)


def test_few_fetches_run_at_once_and_other_projects_are_not_kept_waiting(world: World) -> None:
    for number in range(6):
        ask(world, "https://example.org/people.csv", slug=f"people-{number}")
    assert len(fetch_attempts.claim_waiting()) == 2
    elsewhere = Project.objects.get(slug="elsewhere")
    for number in range(2):
        fetches.create(
            elsewhere,
            slug=f"people-{number}",
            request=FetchRequest(url="https://example.org/people.csv"),
            by=world.stranger,
        )
    assert len(fetch_attempts.claim_waiting()) == 2
    assert not fetch_attempts.claim_waiting()


def test_the_fetch_of_a_deleted_data_set_ends(world: World) -> None:
    version = ask(world, "https://example.org/people.csv")
    claimed = claim()
    deletions.delete(version.dataset, by=make_admin(world))
    assert not fetch_attempts.is_held(claimed)
    with pytest.raises(fetch_attempts.NotHeld):
        fetch_attempts.renew(claimed, received=1, total=None)


def test_a_purged_data_set_takes_its_fetch_along(world: World) -> None:
    version = ask(world, "https://example.org/people.csv")
    deletions.delete(version.dataset, by=make_admin(world))
    Deletion.objects.update(until=clock.now() - timedelta(seconds=1))
    assert purge.purge_due(deadline=time.monotonic() + 60) == 1
    assert not Fetch.objects.exists()


def test_a_purged_project_takes_its_credentials_and_fetches_along(world: World) -> None:
    row = save_token(world, "example.org")
    ask(world, "https://example.org/people.csv", credential="web")
    deletions.delete(world.project, by=row.created_by)
    Deletion.objects.update(until=clock.now() - timedelta(seconds=1))
    assert purge.purge_due(deadline=time.monotonic() + 60) == 1
    assert not Fetch.objects.exists() and not Credential.objects.exists()


def test_requests_that_no_fetch_could_serve_are_refused_at_their_field(world: World) -> None:
    for fields, pointer in (
        ({"url": "http://example.org/a.csv"}, "/url"),
        ({"url": "https://127.0.0.1/a.csv"}, "/url"),
        ({"url": "https://[::ffff:10.0.0.1]/a.csv"}, "/url"),
        ({"url": "/etc/passwd"}, "/url"),
        ({"url": "gs://bucket/a.csv"}, "/url"),
        ({"url": "https://example.org/a.exe"}, "/url"),
        ({"url": "https://example.org/a.csv", "file_name": "a.exe"}, "/file_name"),
        ({"url": "https://example.org/a.csv", "file_name": "a" * 200 + ".csv"}, "/file_name"),
        ({"url": "https://example.org/a.csv", "file_name": "a\x1b.csv"}, "/file_name"),
        ({"url": "https://example.org/a.csv", "sha256": "xyz"}, "/sha256"),
        ({"url": "https://example.org/a.csv", "credential": "none"}, "/credential"),
    ):
        with pytest.raises(BadInput) as refused:
            ask(world, **fields)
        assert [problem.pointer for problem in refused.value.problems] == [pointer]
    assert not Fetch.objects.exists()


def test_a_viewer_and_a_stranger_cannot_fetch(world: World) -> None:
    request = FetchRequest(url="https://example.org/a.csv")
    for user, error in ((world.viewer, Forbidden), (world.stranger, NotFound)):
        with pytest.raises(error):
            fetches.create(world.project, slug="x", request=request, by=user)


def test_the_query_of_an_address_is_stored_encrypted_alone(world: World) -> None:
    version = ask(world, "https://example.org/a.csv?X-Amz-Signature=53cr37")
    row = row_of(version)
    assert "53cr37" not in str(vars(row)) and "53cr37" not in str(version.request)
    assert "53cr37" not in str(list(AuditEvent.objects.values()))
    assert fetch_attempts.work_of(claim()).address.path == "/a.csv?X-Amz-Signature=53cr37"


def save_token(world: World, host: str, name: str = "web") -> Credential:
    fields = {"kind": "bearer", "host": host, "token": "t0ps3cr3t"}
    return credentials.save(world.project, name, CREDENTIAL.validate_python(fields), by=make_admin(world))


def test_a_credential_is_used_for_its_host_alone(world: World, stored: Path, allow: Any) -> None:
    with serving(file(CSV)) as server:
        allow("127.0.0.1", server.port)
        save_token(world, f"127.0.0.1:{server.port}")
        url = f"http://127.0.0.1:{server.port}/people.csv"
        assert fetch(ask(world, url, credential="web")).upload is not None
        assert b"Bearer t0ps3cr3t" in server.heads[0]
        with pytest.raises(BadInput) as refused:
            ask(world, "https://evil.example/people.csv", slug="x", credential="web")
        assert refused.value.problems[0].pointer == "/credential"


def test_a_credential_that_is_deleted_meanwhile_is_not_used(world: World, stored: Path) -> None:
    row = save_token(world, "example.org")
    version = ask(world, "https://example.org/people.csv", credential="web")
    credentials.delete(world.project, "web", by=row.created_by)
    assert not Credential.objects.exists()
    run(claim())
    assert error_of(version)["message"] == "Credential 'web' was deleted."


def test_a_credential_of_another_project_is_unknown(world: World) -> None:
    save_token(world, "example.org")
    elsewhere = Project.objects.get(slug="elsewhere")
    request = FetchRequest(url="https://example.org/a.csv", credential="web")
    with pytest.raises(BadInput):
        fetches.create(elsewhere, slug="x", request=request, by=world.stranger)
