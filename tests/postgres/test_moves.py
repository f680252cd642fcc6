"""Moves between SQLite and PostgreSQL."""

import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from jobs.models import AuditEvent, User
from jobs.queries import compatibility
from tests.ops.conftest import needs_postgres, new_database
from tests.ops.guide_commands import command
from tests.ops.killed_moves import move_killed_at_steps
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
from webapp.ops.moves.places import as_default, opened
from webapp.ops.new_database import create
from webapp.settings import databases

pytestmark = [pytest.mark.django_db, needs_postgres]


@pytest.fixture
def installation(tmp_path: Path, migrated: Path | None) -> Installation:
    if migrated is None:
        pytest.skip("the tests use no SQLite")
    return Installation(tmp_path / "home", migrated)


@pytest.fixture
def server() -> Iterator[dict[str, Any]]:
    """An empty database, to which nothing else is connected."""
    with new_database() as (url, connection):
        connection.close()
        yield databases.database_at(url)


def test_there_and_back_all_rows_are_the_same(
    installation: Installation, server: dict[str, Any], tmp_path: Path
) -> None:
    before, log, next_id = (
        checksums(installation.database),
        state_of_log(installation.database),
        next_token_id(installation.database),
    )
    assert installation.move(server).audit.holds
    assert checksums(server) == before
    with opened(server) as wrapper, as_default(wrapper):
        assert compatibility.problem() is None
        assert AuditEvent.objects.get(action="test.detail").detail["detail"] == DETAILS
        assert User.objects.get(username="viewer").date_joined == MICROSECONDS
        assert User.objects.get(username="viewer").is_active is False
    assert state_of_log(server) == log
    back = databases.database_at(f"sqlite://{tmp_path / 'back.sqlite3'}")
    installation.database = server
    assert installation.move(back).audit.holds
    assert checksums(back) == before
    assert state_of_log(back) == log
    assert next_token_id(back) == next_id
    assert next_token_id(server) == next_id
    with (
        closing(sqlite3.connect(installation.file)) as old,
        closing(sqlite3.connect(str(back["NAME"]))) as new,
    ):
        # As Django writes it: SQLite compares JSON as text.
        query = "SELECT scopes, created FROM jobs_apitoken"
        assert old.execute(query).fetchall() == new.execute(query).fetchall()


def test_the_command_of_the_guide_moves_to_postgresql(installation: Installation) -> None:
    with new_database() as (url, connection):
        connection.close()
        done = command(19, "postgresql://").run(
            {"postgresql://trainyard@db.internal/trainyard": url},
            timeout=240,
            DJANGO_SETTINGS_MODULE="webapp.settings.main",
            TRAINYARD_HOME=str(installation.home.root),
            TRAINYARD_SECRET_KEY_FILE=str(settings.TRAINYARD_SECRET_KEY_FILE),
        )
        assert "are the same in both databases" in done.stdout, done.stderr
        assert checksums(databases.database_at(url)) == checksums(installation.database)


def test_indexes_and_foreign_keys_are_those_of_a_new_database(
    installation: Installation, server: dict[str, Any]
) -> None:
    with new_database() as (url, connection):
        connection.close()
        new = databases.database_at(url)
        with opened(new) as wrapper, as_default(wrapper):
            create()
        installation.move(server)
        assert definitions(server) == definitions(new)


def definitions(database: dict[str, Any]) -> set[tuple[str, ...]]:
    with opened(database) as wrapper, wrapper.cursor() as cursor:
        cursor.execute(
            "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'public' UNION ALL "
            "SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint"
        )
        return set(cursor.fetchall())


def test_a_source_to_which_others_are_connected_is_refused(
    installation: Installation, server: dict[str, Any], tmp_path: Path
) -> None:
    installation.move(server)
    installation.database = server
    back = databases.database_at(f"sqlite://{tmp_path / 'back.sqlite3'}")
    with opened(server) as web_server:
        web_server.ensure_connection()
        with pytest.raises(OpsError, match="a connection of trainyard from this machine"):
            installation.move(back)
    assert not table_names(back)


def test_a_value_that_postgresql_does_not_take_is_named_and_nothing_is_moved(
    installation: Installation, server: dict[str, Any]
) -> None:
    with closing(sqlite3.connect(installation.file)) as database, database:
        database.execute("UPDATE jobs_apitoken SET name = 'a' || char(0)")
    with pytest.raises(OpsError, match=r"jobs_apitoken cannot be moved, at or before the row with id \d+"):
        installation.move(server)
    with closing(sqlite3.connect(installation.file)) as database, database:
        database.execute("UPDATE jobs_apitoken SET name = ?", ["a" * 101])
    with pytest.raises(OpsError, match="value too long for type character varying"):
        installation.move(server)
    with closing(sqlite3.connect(installation.file)) as database, database:
        database.execute("UPDATE jobs_apitoken SET name = 'CI'")
    installation.move(server)


def test_a_killed_move_is_refused_or_whole_and_is_repeated(installation: Installation) -> None:
    with ExitStack() as ends:

        def targets() -> Iterator[dict[str, Any]]:
            while True:
                url, connection = ends.enter_context(new_database())
                connection.close()
                yield databases.database_at(url)

        move_killed_at_steps(installation, targets())


def test_a_database_of_another_encoding_is_refused(installation: Installation) -> None:
    with new_database() as (url, connection):
        connection.execute(
            "CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'"
        )
        try:
            target = databases.database_at(url) | {"NAME": "latin"}
            with pytest.raises(OpsError, match="encoding LATIN1"):
                installation.move(target)
        finally:
            connection.execute("DROP DATABASE latin")
