"""A fetch stores a file within the limits, and ends with a sentence and without a trace otherwise."""

import hashlib
import shutil
from pathlib import Path
from typing import Any

import pytest

from jobs.actions.data import fetch_attempts, uploads
from jobs.errors import FetchFailed, QuotaReached
from jobs.fetching import download
from jobs.fetching.download import Copying
from jobs.kinds.profile.rows import profiles_of
from jobs.models import Artifact, Fetch, Job
from jobs.queries.storage import disk_use
from jobs.sources.base import Source
from jobs.store import store
from tests.datasets.test_disk_quota import limit
from tests.fetching.making import CSV, ask, claim, error_of, fetch, row_of
from tests.fetching.servers import Exchange, endless, file
from tests.world import World

State = Fetch.State


@pytest.fixture
def stored(tmp_path: Path, settings: Any) -> Path:
    """Give the test a store of its own, and return its folder."""
    settings.TRAINYARD_ARTIFACTS = str(tmp_path / "artifacts")
    return tmp_path / "artifacts"


def files_in(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


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
    "another format": (file(b"SQLite format 3\0" + bytes(100)), "invalid"),
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
    usage = shutil.disk_usage("/")
    free = iter([2**40, 2**40])
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=next(free, 0)))
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
