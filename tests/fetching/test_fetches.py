"""A fetch stores a file within the limits, and ends with a sentence and without a trace otherwise."""

import hashlib
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from django.db import connection, connections, transaction

from jobs import clock
from jobs.actions.data import credentials, fetch_attempts, fetches, uploads
from jobs.actions.storage import deletions, purge
from jobs.errors import BadInput, Conflict, FetchFailed, Forbidden, NotFound, QuotaReached
from jobs.fetching import download
from jobs.fetching.download import Copying, run
from jobs.kinds.profile.rows import profiles_of
from jobs.models import Artifact, AuditEvent, Credential, Deletion, Fetch, Job, Project
from jobs.queries.storage import disk_use
from jobs.sources.base import Source
from jobs.spec.data.credentials import CREDENTIAL
from jobs.spec.data.fetching import FetchRequest
from jobs.store import store
from tests.datasets.test_disk_quota import limit
from tests.fetching.making import CSV, ask, claim, error_of, fetch, make_admin, row_of
from tests.fetching.servers import Answer, Exchange, endless, file, serving
from tests.world import World

State = Fetch.State


@pytest.fixture
def stored(tmp_path: Path, settings: Any) -> Path:
    """Give the test a store of its own, and return its folder."""
    settings.TRAINYARD_ARTIFACTS = str(tmp_path / "artifacts")
    return tmp_path / "artifacts"


def files_in(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


@pytest.fixture
def site(allow: Any) -> Any:
    """Return a function that runs a server with an answer, and gives the address of its file."""

    @contextmanager
    def serve(answer: Answer) -> Iterator[str]:
        with serving(answer) as server:
            allow("127.0.0.1", server.port)
            yield f"http://127.0.0.1:{server.port}/people.csv"

    return serve


def test_a_fetched_file_is_stored_and_read_by_a_worker(world: World, stored: Path, site: Any) -> None:
    with site(file(CSV, 'ETag: "7"')) as url:
        version = fetch(ask(world, url))
    digest = hashlib.sha256(CSV).hexdigest()
    row = row_of(version)
    assert (version.state, version.upload_id, version.request["source"]) == ("preparing", digest, "csv")
    assert (row.state, row.sha256, row.etag, row.received, row.reserved) == (
        State.DONE,
        digest,
        '"7"',
        len(CSV),
        0,
    )
    assert store().path(digest).read_bytes() == CSV
    assert store().path(digest).stat().st_mode & 0o777 == 0o600
    assert Job.objects.filter(profiles_of(version.pk)).count() == 1
    assert [path.name for path in files_in(stored)] == [digest]


def test_the_same_file_is_stored_once(world: World, stored: Path, site: Any) -> None:
    with site(file(CSV)) as url:
        first, second = fetch(ask(world, url)), fetch(ask(world, url, slug="again"))
    assert first.upload_id == second.upload_id
    assert len(files_in(stored)) == 1


FAILURES: dict[str, tuple[Any, str]] = {
    "less than announced": (file(CSV, length=len(CSV) + 10), "wrong_size"),
    "an error": (file(b"", status="503 Unavailable"), "source_refused"),
    "an empty file": (file(b""), "invalid"),
    "another format": (file(b"PAR1" + bytes(100) + b"PAR1"), "invalid"),
}


@pytest.mark.parametrize("case", FAILURES)
def test_a_failed_fetch_has_a_reason_and_no_file(case: str, world: World, stored: Path, site: Any) -> None:
    answer, code = FAILURES[case]
    with site(answer) as url:
        version = fetch(ask(world, url))
    assert error_of(version)["code"] == code
    assert version.upload is None and row_of(version).state == State.FAILED
    assert row_of(version).reserved == 0
    assert not Artifact.objects.filter(bytes__gt=100).exists()
    assert not files_in(stored)


def test_a_length_that_is_too_small_cuts_the_file_at_that_length(
    world: World, stored: Path, site: Any
) -> None:
    with site(file(CSV, length=20)) as url:
        version = fetch(ask(world, url))
    assert version.upload is not None and store().path(version.upload.digest).read_bytes() == CSV[:20]


def test_an_endless_file_ends_at_the_limit_of_an_upload(
    world: World, stored: Path, site: Any, settings: Any
) -> None:
    settings.TRAINYARD_MAX_UPLOAD_BYTES = 1_000_000
    with site(endless) as url:
        version = fetch(ask(world, url))
    error = error_of(version)
    assert error["code"] == "too_large" and "1,000,000 bytes" in error["message"]
    assert not files_in(stored)


def test_a_file_that_is_announced_as_too_large_is_not_read(
    world: World, stored: Path, site: Any, settings: Any
) -> None:
    settings.TRAINYARD_MAX_UPLOAD_BYTES = 10
    with site(file(CSV)) as url:
        version = fetch(ask(world, url))
    assert error_of(version)["code"] == "too_large"
    assert row_of(version).received == 0


@pytest.mark.parametrize("is_late", [False, True], ids=["before", "after"])
def test_a_file_must_fit_into_the_disk_quota_before_and_after_it_is_received(
    world: World, stored: Path, site: Any, monkeypatch: pytest.MonkeyPatch, is_late: bool
) -> None:
    if is_late:
        # As if others had used the room meanwhile.
        monkeypatch.setattr(fetch_attempts, "reserve", lambda *_: None)
    limit(world.project, len(CSV) - 1)
    with site(file(CSV)) as url:
        version = fetch(ask(world, url))
    assert error_of(version)["code"] == "quota_reached"
    assert [path.parent.name for path in files_in(stored)] == [".trash"] * is_late


def test_the_quota_ends_a_file_whose_size_is_not_announced(
    world: World, stored: Path, site: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download, "STEP", 100_000)
    limit(world.project, 500_000)
    with site(endless) as url:
        version = fetch(ask(world, url))
    assert error_of(version)["code"] == "quota_reached"
    assert not files_in(stored)


def test_a_running_fetch_counts_against_the_quota_of_uploads(world: World) -> None:
    ask(world, "https://example.org/people.csv")
    claimed = claim()
    fetch_attempts.reserve(claimed, 5000)
    assert disk_use.bytes_being_received(world.project.pk) == 5000
    limit(world.project, 6000)
    with pytest.raises(QuotaReached):
        uploads.reserve(world.project, 1500)


def test_a_full_disk_ends_a_fetch(world: World, stored: Path, site: Any, settings: Any) -> None:
    settings.TRAINYARD_MIN_FREE_BYTES = 2**62
    with site(file(CSV)) as url:
        version = fetch(ask(world, url))
    assert error_of(version)["code"] == "disk_full"
    assert not files_in(stored)


def test_a_disk_that_becomes_full_ends_a_fetch(
    world: World, stored: Path, site: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = shutil.disk_usage("/")
    free = iter([2**40, 2**40])
    monkeypatch.setattr(shutil, "disk_usage", lambda _: found._replace(free=next(free, 0)))
    monkeypatch.setattr(download, "RENEW_SECONDS", 0.0)
    with site(endless) as url:
        version = fetch(ask(world, url))
    assert error_of(version)["code"] == "disk_full"
    assert not files_in(stored)


def test_a_file_must_have_the_digest_of_the_request(world: World, stored: Path, site: Any) -> None:
    with site(file(CSV)) as url:
        bad = fetch(ask(world, url, slug="bad", sha256="0" * 64))
        assert error_of(bad)["code"] == "digest"
        assert not files_in(stored)
        good = fetch(ask(world, url, sha256=hashlib.sha256(CSV).hexdigest().upper()))
    assert good.upload is not None


def test_a_source_that_sends_too_slowly_is_given_up(world: World, stored: Path) -> None:
    ask(world, "https://example.org/people.csv")
    seconds = iter(range(0, 10_000, 25))
    copying = Copying(claim(), Source(None, iter([b"x"] * 100)), clock=lambda: float(next(seconds)))
    with pytest.raises(FetchFailed) as failed:
        list(copying.blocks())
    assert failed.value.code == "stalled"


def test_a_source_that_does_not_begin_in_time_is_given_up(
    world: World, stored: Path, site: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of the answers before the last one ends the wait for the next bytes."""

    def answer(exchange: Exchange) -> None:
        while not exchange.stopping.is_set():
            exchange.send(b"HTTP/1.1 100 Continue\r\n\r\n")

    monkeypatch.setattr(download, "OPEN_SECONDS", 0.3)
    with site(answer) as url:
        version = fetch(ask(world, url))
    assert error_of(version)["code"] == "too_slow"


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
    given = {"kind": "bearer", "host": host, "token": "t0ps3cr3t"}
    return credentials.save(world.project, name, CREDENTIAL.validate_python(given), by=make_admin(world))


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
