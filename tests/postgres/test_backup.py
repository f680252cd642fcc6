"""Backups when the database is PostgreSQL."""

from pathlib import Path

import pytest

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
        connection.execute("CREATE TABLE point AS SELECT 1 AS value")
        saved = full.back_up(tmp_path / "all.tar")
        connection.execute("DELETE FROM point")
        with pytest.raises(OpsError, match="--force"):
            full.restore(saved)
        full.restore(saved, force=True)
        assert connection.execute("SELECT value FROM point").fetchall() == [(1,)]
