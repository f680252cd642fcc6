"""`move-database` copies every row exactly, into an empty database alone, while no part runs."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import transaction

from jobs import clock
from jobs.models import AuditEvent, Lease, User, Worker
from jobs.queries import compatibility
from jobs.queries.runs.health import SCHEDULER_LEASE
from jobs.unfinished_move import TABLE
from tests.ops.database_users import using
from tests.ops.moved import (
    DETAILS,
    MICROSECONDS,
    Installation,
    checksums,
    next_token_id,
    state_of_log,
    table_names,
)
from webapp.ops.errors import OpsError
from webapp.ops.lock import HomeLock
from webapp.ops.moves import move as moving
from webapp.ops.moves.places import as_default, opened
from webapp.ops.moves.progress import Progress
from webapp.ops.moves.tables import Checksum, all_models, all_tables
from webapp.settings import databases

pytestmark = pytest.mark.django_db  # the tables of the run are made for tests that use the database


@pytest.fixture
def installation(tmp_path: Path, migrated: Path | None) -> Installation:
    if migrated is None:
        pytest.skip("the tests use no SQLite")
    return Installation(tmp_path / "home", migrated)


@pytest.fixture
def target(tmp_path: Path) -> dict[str, Any]:
    return databases.database_at(f"sqlite://{tmp_path / 'new.sqlite3'}")


def refusal(installation: Installation, target: dict[str, Any]) -> str:
    with pytest.raises(OpsError) as error:
        installation.move(target)
    return str(error.value)


def test_all_rows_are_the_same_afterwards_and_the_source_is_unchanged(
    installation: Installation, target: dict[str, Any]
) -> None:
    before = checksums(installation.database)
    done = installation.move(target)
    assert checksums(target) == before == checksums(installation.database)
    assert done.rows == sum(checksum.rows for checksum in before.values())
    assert done.audit.holds
    assert state_of_log(target) == state_of_log(installation.database)
    assert table_names(target) == table_names(installation.database)
    with opened(target) as wrapper, as_default(wrapper):
        assert compatibility.problem() is None
        assert AuditEvent.objects.get(action="test.detail").detail["detail"] == DETAILS
        assert User.objects.get(username="viewer").date_joined == MICROSECONDS


def test_ids_of_rows_that_are_gone_are_not_given_again(
    installation: Installation, target: dict[str, Any]
) -> None:
    expected = next_token_id(installation.database)
    installation.move(target)
    assert next_token_id(target) == expected


def test_every_table_is_moved() -> None:
    assert {table.name for table in all_tables()} == {model._meta.db_table for model in all_models()}


def test_a_checksum_depends_on_each_value_and_not_on_the_order() -> None:
    def checksum(*rows: tuple[Any, ...]) -> Checksum:
        made = Checksum()
        for row in rows:
            made.add(row)
        return made

    assert checksum((1, "a"), (2, "b")) == checksum((2, "b"), (1, "a"))
    assert checksum((1, "a"), (2, "b")) != checksum((1, "b"), (2, "a"))
    assert checksum((1, "a")) != checksum((1, "a"), (1, "a"))
    assert checksum((1, None)) != checksum((1, "null"))


def test_a_target_with_tables_is_refused(installation: Installation, target: dict[str, Any]) -> None:
    installation.move(target)
    before = checksums(target)
    assert "is not empty" in refusal(installation, target)
    assert "is not empty" in refusal(installation, installation.database)
    assert checksums(target) == before


def test_a_source_of_another_version_is_refused(installation: Installation, target: dict[str, Any]) -> None:
    with closing(sqlite3.connect(installation.file)) as database, database:
        database.execute("INSERT INTO django_migrations VALUES (9999, 'jobs', '0999_new', '2026-01-01')")
    assert "0999_new" in refusal(installation, target)
    assert not Path(target["NAME"]).exists() or not table_names(target)


def test_a_log_that_is_not_valid_is_refused_with_the_way_on(
    installation: Installation, target: dict[str, Any]
) -> None:
    with closing(sqlite3.connect(installation.file)) as database, database:
        database.execute("UPDATE jobs_auditevent SET target = 'y' WHERE action = 'test.detail'")
    message = refusal(installation, target)
    assert "not valid before the move" in message
    assert "audit seal" in message
    assert not table_names(target)


@pytest.mark.parametrize("part", ["scheduler", "worker", "up"])
def test_parts_that_run_are_named(installation: Installation, target: dict[str, Any], part: str) -> None:
    with opened(installation.database) as wrapper, as_default(wrapper):
        later = clock.seconds_from_now(30)
        if part == "scheduler":
            Lease.objects.create(name=SCHEDULER_LEASE, holder="a", until=later)
        elif part == "worker":
            Worker.objects.create(name="gpu-3", host="rack-2", pid=1, slots=1, lease_until=later)
    if part == "up":
        lock = HomeLock(installation.home.lock_file)
        lock.acquire()
        assert "already runs" in refusal(installation, target)
        lock.release()
        return
    message = refusal(installation, target)
    assert ("the worker gpu-3 on rack-2" if part == "worker" else "a scheduler has its lease") in message
    assert not table_names(target)


def test_a_process_that_uses_the_database_is_named_until_it_is_killed(
    installation: Installation, target: dict[str, Any]
) -> None:
    with using(installation.database, Path("/another/home")) as part:
        message = refusal(installation, target)
        part.kill()
    assert f"the process {part.pid} (-c from pathlib" in message
    installation.move(target)


def test_a_source_to_which_another_process_writes_is_refused(
    installation: Installation, target: dict[str, Any]
) -> None:
    installation.database["OPTIONS"]["timeout"] = 0.1
    with closing(sqlite3.connect(installation.file)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        assert "The database is in use (database is locked)" in refusal(installation, target)
    assert not table_names(target)


def test_a_target_that_cannot_be_opened_is_named(installation: Installation, tmp_path: Path) -> None:
    with pytest.raises(ImproperlyConfigured, match="the address: there is no folder '/nowhere'"):
        databases.database_at("sqlite:///nowhere/new.sqlite3")
    folder = tmp_path / "folder"
    folder.mkdir(mode=0o700)
    target = databases.database_at(f"sqlite://{folder}")
    assert f"cannot be moved to {folder}: unable to open" in refusal(installation, target)


def test_nothing_writes_to_the_source_meanwhile(
    installation: Installation, target: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = []

    def write_and_take(*_: object) -> None:
        with closing(sqlite3.connect(installation.file, timeout=0)) as other:
            try:
                other.execute("DELETE FROM jobs_apitoken")
            except sqlite3.OperationalError as error:
                refused.append(str(error))

    monkeypatch.setattr(moving, "_take_mark", write_and_take)
    installation.move(target)
    assert refused == ["database is locked"]


def test_a_copy_that_differs_leaves_a_target_that_every_part_refuses(
    installation: Installation, target: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def lose_a_row(*_: object) -> None:
        with transaction.get_connection().cursor() as cursor:
            cursor.execute("DELETE FROM jobs_apitoken")

    monkeypatch.setattr(moving, "continue_after", lose_a_row)
    assert "jobs_apitoken has 1 rows, and 0 in the target" in refusal(installation, target)
    assert table_names(target) == {TABLE}
    with opened(target) as wrapper, as_default(wrapper):
        for migrates in (False, True):
            sentence = compatibility.problem(migrates=migrates) or ""
            assert "move into this database was interrupted" in sentence
    monkeypatch.undo()
    installation.move(target)
    assert checksums(target) == checksums(installation.database)


def test_progress_has_the_time_that_is_left() -> None:
    times, lines = iter([0.0, 4.0, 10.0, 12.0]), list[str]()
    progress = Progress(1024, lines.append, lambda: next(times))
    for _ in range(768):
        progress.step("jobs_job")
    assert lines == ["jobs_job: 50 % of the move, about 10 s left."]
