"""Backups when the database is PostgreSQL."""

from pathlib import Path

import psycopg
import pytest

from jobs.keys import key_ring
from jobs.store import LocalStore
from tests.ops.conftest import needs_postgres, new_database
from tests.ops.test_backup import Installation, full
from webapp.ops.errors import OpsError

__all__ = ["full"]


@needs_postgres
def test_a_postgres_database_is_restored(full: Installation, tmp_path: Path) -> None:
    with new_database() as (_, connection):
        info = connection.info
        full.database = {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": info.dbname,
            "USER": info.user,
            "HOST": info.host,
        }
        connection.execute("CREATE TABLE jobs_point AS SELECT 1 AS value")
        saved = full.back_up(tmp_path / "all.tar")
        connection.execute("DELETE FROM jobs_point")
        with pytest.raises(OpsError, match="--force"):
            full.restore(saved)
        full.restore(saved, force=True)
        assert connection.execute("SELECT value FROM jobs_point").fetchall() == [(1,)]


def installed_on(full: Installation, connection: psycopg.Connection) -> Installation:
    info = connection.info
    full.database = {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": info.dbname,
        "USER": info.user,
        "HOST": info.host,
    }
    return full


@needs_postgres
def test_an_empty_postgres_database_needs_no_force(full: Installation, tmp_path: Path) -> None:
    with new_database() as (_, source), new_database() as (_, target):
        source.execute("CREATE TABLE jobs_point AS SELECT 1 AS value")
        saved = installed_on(full, source).back_up(tmp_path / "all.tar")
        copy = installed_on(Installation(tmp_path / "copy"), target)
        copy.restore(saved)
        assert target.execute("SELECT value FROM jobs_point").fetchall() == [(1,)]
        with pytest.raises(OpsError, match="is not empty"):
            Installation.restore(installed_on(Installation(tmp_path / "third"), target), saved)


@needs_postgres
def test_tables_of_a_newer_program_do_not_remain(full: Installation, tmp_path: Path) -> None:
    with new_database() as (_, connection):
        connection.execute("CREATE TABLE jobs_job AS SELECT 1 AS id")
        saved = installed_on(full, connection).back_up(tmp_path / "all.tar")
        connection.execute("CREATE TABLE jobs_novelty AS SELECT 1 AS id")
        connection.execute("CREATE TABLE of_another_program AS SELECT 1 AS id")
        full.restore(saved, force=True)
        tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1")
        assert tables.fetchall() == [("jobs_job",), ("of_another_program",)]


@needs_postgres
def test_a_dump_that_does_not_fit_leaves_the_database_as_it_was(full: Installation, tmp_path: Path) -> None:
    with new_database() as (_, connection):
        connection.execute("CREATE TABLE jobs_job AS SELECT 1 AS id")
        saved = installed_on(full, connection).back_up(tmp_path / "all.tar")
        connection.execute("UPDATE jobs_job SET id = 2")
        # It is in the way of the restored table, and does not belong to it.
        connection.execute("CREATE VIEW jobs_view AS SELECT id FROM jobs_job")
        connection.execute("ALTER TABLE jobs_job RENAME TO other_job")
        connection.execute("CREATE VIEW jobs_job AS SELECT id FROM other_job")
        with pytest.raises(OpsError, match="psql failed"):
            full.restore(saved, force=True)
        assert connection.execute("SELECT id FROM other_job").fetchall() == [(2,)]


@needs_postgres
def test_a_copy_gets_an_identity_of_its_own_in_the_same_transaction(
    full: Installation, tmp_path: Path
) -> None:
    lease = "CREATE TABLE jobs_lease (name text PRIMARY KEY, holder text, until timestamptz)"
    with new_database() as (_, source), new_database() as (_, target):
        source.execute(lease)
        saved = installed_on(full, source).back_up(tmp_path / "all.tar")
        copy = installed_on(Installation(tmp_path / "copy"), target)
        copy.restore(saved)
        ((name, holder),) = target.execute("SELECT name, holder FROM jobs_lease").fetchall()
    assert name == "restored"
    assert LocalStore(copy.artifacts).owner() == holder


@needs_postgres
@pytest.mark.parametrize("column", ["process", "of_another_version"])
def test_workers_that_a_restored_database_knows_must_register_again(
    full: Installation, tmp_path: Path, column: str
) -> None:
    with new_database() as (_, source), new_database() as (_, target):
        source.execute(f"CREATE TABLE jobs_worker AS SELECT 'up' AS state, 'p' AS {column}")
        saved = installed_on(full, source).back_up(tmp_path / "all.tar")
        installed_on(Installation(tmp_path / "copy"), target).restore(saved)
        row = target.execute(f"SELECT state, {column} FROM jobs_worker").fetchone()
    assert row == (("lost", "") if column == "process" else ("up", "p"))


@needs_postgres
def test_an_installation_is_not_taken_for_a_new_one_while_its_database_is_away(
    full: Installation, tmp_path: Path
) -> None:
    with new_database() as (_, connection):
        connection.execute("CREATE TABLE jobs_point AS SELECT 1 AS value")
        saved = installed_on(full, connection).back_up(tmp_path / "all.tar")
    # It was dropped at the end of the block.
    with pytest.raises(OpsError, match="The database cannot be read"):
        full.restore(saved, force=True)
    assert not list(full.home.root.glob("restore.*"))
    assert LocalStore(full.artifacts).owner() is None


@needs_postgres
def test_a_postgres_database_in_use_is_not_replaced(full: Installation, tmp_path: Path) -> None:
    with new_database() as (_, connection):
        connection.execute(
            "CREATE TABLE jobs_worker (name text, host text, state text, lease_until timestamptz)"
        )
        saved = installed_on(full, connection).back_up(tmp_path / "all.tar")
        connection.execute("INSERT INTO jobs_worker VALUES ('b', 'far', 'up', now() + interval '9 s')")
        with pytest.raises(OpsError, match="in use by worker b on far"):
            full.restore(saved, force=True)
        connection.execute("UPDATE jobs_worker SET lease_until = now()")
        full.restore(saved, force=True)


@needs_postgres
def test_a_database_without_an_installation_is_not_backed_up(full: Installation, tmp_path: Path) -> None:
    with new_database() as (_, connection):
        connection.execute("CREATE TABLE of_another_program AS SELECT 1 AS id")
        with pytest.raises(OpsError, match="its database has no tables of Trainyard"):
            installed_on(full, connection).back_up(tmp_path / "all.tar")
    assert not (tmp_path / "all.tar").exists()


@needs_postgres
def test_the_key_of_another_database_is_found(full: Installation, tmp_path: Path) -> None:
    full.secret_key.write_text("b" * 60)
    with new_database() as (_, connection):
        connection.execute("CREATE TABLE jobs_installationsettings (id int, first text, key text, last text)")
        insert = "INSERT INTO jobs_installationsettings VALUES (1, %s, %s, '')"
        connection.execute(insert, ["of a\ttab", key_ring.name_of_key("b" * 60)])
        saved = installed_on(full, connection).back_up(tmp_path / "all.tar")
        connection.execute("UPDATE jobs_installationsettings SET key = %s", [key_ring.name_of_key("a" * 60)])
        with pytest.raises(OpsError, match="its database belongs to the key"):
            full.back_up(saved)
