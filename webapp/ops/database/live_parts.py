"""Finds parts of an installation that still use its database, also those on other machines."""

from collections.abc import Mapping
from typing import Any

from webapp.ops.database_copies import is_sqlite, read_column
from webapp.ops.errors import OpsError

_SCHEDULERS = "SELECT 'the scheduler ' || holder FROM jobs_lease WHERE name = 'scheduler' AND until > {now}"
_WORKERS = (
    "SELECT 'worker ' || name || ' on ' || host FROM jobs_worker "
    "WHERE state IN ('up', 'draining') AND lease_until > {now} ORDER BY name"
)
# As Django writes times.
_NOW = {"sqlite": "strftime('%Y-%m-%d %H:%M:%f', 'now')", "postgresql": "now()"}
_NAMED = 5


def require_none(database: Mapping[str, Any]) -> None:
    """Require that no scheduler and no worker uses the database.

    Args:
        database: Django's.

    Raises:
        OpsError: one does, or was killed a few seconds ago.
    """
    now = _NOW["sqlite" if is_sqlite(database) else "postgresql"]
    # A database without these tables has no such parts.
    queries = (query.format(now=now) for query in (_SCHEDULERS, _WORKERS))
    found = [part for query in queries for part in read_column(database, query) or ()]
    if found:
        named = ", ".join(found[:_NAMED]) + (" and others" if len(found) > _NAMED else "")
        raise OpsError(
            f"The database is in use by {named}. Stop all parts on all machines first; one that was "
            "killed no longer counts after 15 s."
        )
