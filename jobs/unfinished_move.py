"""Recognizes a database into which a move was killed: it has no tables yet, and must not be used."""

from django.db import connection

from jobs import program

TABLE = "trainyard_unfinished_move"
"""The table that exists from a move's first change of its target to its last."""


def problem() -> str | None:
    """Return why nothing may use the database, in sentences; None if no move into it was interrupted."""
    if TABLE not in connection.introspection.table_names():
        return None
    return (
        "A move into this database was interrupted, or still runs: it is incomplete. Run "
        f"`{program.command_line('move-database URL')}` again, with TRAINYARD_DATABASE_URL of the database "
        f"that is moved. To give the move up, drop the table {TABLE}."
    )
