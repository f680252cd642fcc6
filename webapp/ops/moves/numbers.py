"""Reads and writes the last number that a database gave in a table, so that no number is given twice."""

from django.db.backends.base.base import BaseDatabaseWrapper

from webapp.ops.moves.tables import Table


def last_number(connection: BaseDatabaseWrapper, table: Table) -> int:
    """Return the last number that was given, also if its row was deleted; 0 if there is none."""
    if table.serial is None:
        return 0
    quote = connection.ops.quote_name
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT max({quote(table.serial)}) FROM {quote(table.name)}")  # noqa: S608
        highest = cursor.fetchone()[0] or 0
        if connection.vendor != "postgresql":
            cursor.execute("SELECT seq FROM sqlite_sequence WHERE name = %s", [table.name])
            row = cursor.fetchone()
            return max(highest, row[0] if row else 0)
        if (sequence := _sequence(connection, table)) is None:
            return int(highest)
        cursor.execute(f"SELECT last_value, is_called FROM {sequence}")  # noqa: S608  the server's name
        value, is_called = cursor.fetchone()
        return max(highest, value if is_called else 0)


def continue_after(connection: BaseDatabaseWrapper, table: Table, number: int) -> None:
    """Let the next row get a number after `number`."""
    if table.serial is None or number == 0:
        return
    with connection.cursor() as cursor:
        if connection.vendor != "postgresql":
            cursor.execute("DELETE FROM sqlite_sequence WHERE name = %s", [table.name])
            cursor.execute("INSERT INTO sqlite_sequence (name, seq) VALUES (%s, %s)", [table.name, number])
        elif (sequence := _sequence(connection, table)) is not None:
            cursor.execute("SELECT setval(%s, %s)", [sequence, number])


def _sequence(connection: BaseDatabaseWrapper, table: Table) -> str | None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_get_serial_sequence(%s, %s)", [connection.ops.quote_name(table.name), table.serial]
        )
        name: str | None = cursor.fetchone()[0]
    return name
