"""Finds out why a database must not be moved, or not to a place: parts run, or rows are there."""

from django.db.backends.base.base import BaseDatabaseWrapper

from jobs.queries.runs.health import scheduler_is_alive, worker_names
from jobs.unfinished_move import TABLE
from webapp.ops.errors import OpsError

_NAMED = 6
"""How many parts a message names."""


def require_no_parts(connection: BaseDatabaseWrapper) -> None:
    """Require that no part of another machine uses the database, which is the default one.

    Those of this machine share the lock that the move has.

    Raises:
        OpsError: one does, on this machine or on another; the message names it.
    """
    running = _leases()
    if connection.vendor == "postgresql":
        running += _sessions(connection)
    if running:
        more = f"; and {len(running) - _NAMED} more" if len(running) > _NAMED else ""
        raise OpsError(
            f"The database is in use: {'; '.join(running[:_NAMED])}{more}. Stop all parts on all machines "
            "first. A part that was killed counts until its lease ends, after a minute at most."
        )


def _leases() -> list[str]:
    found = ["a scheduler has its lease"] if scheduler_is_alive() else []
    return found + [f"the worker {name}" for name in worker_names()]


def _sessions(connection: BaseDatabaseWrapper) -> list[str]:
    """Describe other connections to a PostgreSQL database. Web servers have no lease, but a connection."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*), coalesce(host(client_addr), 'this machine') AS place, usename, "
            "nullif(application_name, '') AS program FROM pg_stat_activity WHERE "
            "datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend' "
            "GROUP BY place, usename, program ORDER BY place, usename, program"
        )
        return [_connections(*row) for row in cursor]


def _connections(count: int, place: str, user: str, program: str | None) -> str:
    counted = "a connection" if count == 1 else f"{count} connections"
    return f"{counted} of {user} from {place}" + (f" ({program})" if program else "")


def require_empty(connection: BaseDatabaseWrapper) -> None:
    """Require that a database has no tables, except the mark of a move that was killed.

    Raises:
        OpsError: it has.
    """
    with connection.cursor() as cursor:
        names = set(connection.introspection.table_names(cursor, include_views=True)) - {TABLE}
    if names:
        raise OpsError(
            f"The target {connection.settings_dict['NAME']} is not empty: it has {len(names)} tables, such "
            f"as {min(names)}. Nothing was changed. Give the address of an empty database"
            + (", or rename that file first." if connection.vendor == "sqlite" else ".")
        )
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SHOW server_encoding")
            encoding = cursor.fetchone()[0]
        if encoding != "UTF8":
            raise OpsError(f"The target has the encoding {encoding}: create the database with UTF8.")
