"""Moves the database: locks the source, and fills the target in one transaction.

The target is marked before, in a transaction of its own. Killed at any moment, the move leaves a target that
has the mark alone, which every part refuses, and which a repeated move accepts.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.db import DatabaseError, InterfaceError, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from jobs import program
from jobs.queries import compatibility
from jobs.queries.audit import audit_verification
from jobs.queries.audit.audit_verification import Verification
from jobs.unfinished_move import TABLE
from webapp.ops import new_database
from webapp.ops.database import live_parts
from webapp.ops.errors import OpsError
from webapp.ops.home import Home
from webapp.ops.lock import HomeLock
from webapp.ops.moves.numbers import continue_after, last_number
from webapp.ops.moves.places import as_default, opened
from webapp.ops.moves.progress import Progress
from webapp.ops.moves.refusals import require_empty, require_no_parts
from webapp.ops.moves.tables import Checksum, Row, Table, all_tables

type Report = Callable[[str], None]
MARK_SECONDS = 5
"""How long a move waits for the end of another one with the same target."""


@dataclass(frozen=True)
class Moved:
    """A table that was moved, with the checksum of its rows."""

    table: str
    checksum: Checksum


@dataclass(frozen=True)
class Move:
    """The result of a move."""

    tables: tuple[Moved, ...]
    audit: Verification
    left_out: tuple[str, ...]
    """Tables of the source that are not this program's."""

    @property
    def rows(self) -> int:
        """The number of rows."""
        return sum(moved.checksum.rows for moved in self.tables)


def move_database(home: Home, source: Mapping[str, Any], target: Mapping[str, Any], report: Report) -> Move:
    """Copy the database `source` to the empty database `target`. The source is not changed.

    Args:
        home: the installation's home, on which no part may run.
        source: Django's settings of the database.
        target: the same of the new one.
        report: writes a line for the operator.

    Raises:
        OpsError: parts run, the target has tables, the versions differ, the audit log is not valid, a row
            does not fit, or the copy differs. The target stays as it was, or has the mark alone.
    """
    home.create()
    lock = HomeLock(home.lock_file)
    lock.acquire()
    try:
        with (
            live_parts.exclusive(source, home.root),
            opened(source) as origin,
            opened(target) as destination,
        ):
            return _move(origin, destination, report)
    except compatibility.Incompatible as error:
        raise OpsError(str(error)) from error
    except (DatabaseError, InterfaceError) as error:
        raise OpsError(_reason(error, target)) from error
    finally:
        lock.release()


def _reason(error: Exception, target: Mapping[str, Any]) -> str:
    message = str(error).strip()
    # SQLite's begin, and PostgreSQL's NOWAIT and time limit.
    if any(words in message for words in ("locked", "could not obtain lock", "lock timeout")):
        return f"The database is in use ({message}). Stop all parts on all machines first. Nothing was moved."
    return f"The database cannot be moved to {target['NAME']}: {message}"


def _move(origin: BaseDatabaseWrapper, destination: BaseDatabaseWrapper, report: Report) -> Move:
    with as_default(origin):
        compatibility.require()
        require_no_parts(origin)
        require_empty(destination)
        _require_valid_log(audit_verification.verify_chain(), "before the move")
        with transaction.atomic():
            _lock(origin)
            left_out = _other_tables(origin)
            with as_default(destination):
                _mark()
                moved, audit = _fill(origin, destination, report)
    return Move(tuple(moved), audit, left_out)


def _require_valid_log(verification: Verification, when: str) -> None:
    if not verification.holds:
        accept = program.command_line('audit seal --reason "…"')
        raise OpsError(
            f"The audit log is not valid {when}: {verification.message} Nothing was moved. If that is known, "
            f"accept it by `{accept}` first."
        )


def _lock(origin: BaseDatabaseWrapper) -> None:
    """Let nothing write to the source until the transaction ends; SQLite's begins with the write lock."""
    if origin.vendor != "postgresql":
        return
    names = ", ".join(origin.ops.quote_name(table.name) for table in all_tables())
    with origin.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        cursor.execute(f"LOCK TABLE {names} IN SHARE MODE NOWAIT")


def _other_tables(origin: BaseDatabaseWrapper) -> tuple[str, ...]:
    own = {table.name for table in all_tables()}
    return tuple(sorted(set(origin.introspection.table_names()) - own))


def _mark() -> None:
    """Mark the target, which is the default database."""
    with transaction.atomic(), transaction.get_connection().cursor() as cursor:
        cursor.execute(f"CREATE TABLE IF NOT EXISTS {TABLE} (begun integer)")


def _fill(
    origin: BaseDatabaseWrapper, destination: BaseDatabaseWrapper, report: Report
) -> tuple[list[Moved], Verification]:
    tables = all_tables()
    # Each row is copied, and read once more to compare it.
    progress = Progress(2 * sum(table.count(origin) for table in tables), report)
    with destination.constraint_checks_disabled(), transaction.atomic():
        _take_mark(destination)
        # Within the block, whose end adds indexes and foreign keys: full tables get them sooner.
        with new_database.created_tables():
            moved = [Moved(table.name, _copy(table, origin, destination, progress)) for table in tables]
        for table in tables:
            continue_after(destination, table, last_number(origin, table))
        for table, copied in zip(tables, moved, strict=True):
            _compare(table, copied.checksum, destination, progress)
        destination.check_constraints()
        verification = audit_verification.verify_chain()
        _require_valid_log(verification, "in the target")
        with destination.cursor() as cursor:
            cursor.execute(f"DROP TABLE {TABLE}")
    return moved, verification


def _take_mark(destination: BaseDatabaseWrapper) -> None:
    """Lock the mark, so that two moves do not fill one target."""
    if destination.vendor == "postgresql":
        with destination.cursor() as cursor:
            # The server ends the session of a move that was killed a moment later.
            cursor.execute(f"SET LOCAL lock_timeout = '{MARK_SECONDS}s'")
            cursor.execute(f"LOCK TABLE {TABLE} IN ACCESS EXCLUSIVE MODE")
            cursor.execute("SET LOCAL lock_timeout TO DEFAULT")


def _copy(
    table: Table, origin: BaseDatabaseWrapper, destination: BaseDatabaseWrapper, progress: Progress
) -> Checksum:
    checksum = Checksum()
    table.write(destination, _counted(table, table.rows(origin), checksum, progress))
    return checksum


def _compare(table: Table, expected: Checksum, destination: BaseDatabaseWrapper, progress: Progress) -> None:
    found = Checksum()
    for _ in _counted(table, table.rows(destination), found, progress):
        pass
    if found.rows != expected.rows:
        raise OpsError(f"{table.name} has {expected.rows} rows, and {found.rows} in the target.")
    if found != expected:
        raise OpsError(f"The rows of {table.name} differ in the target. Nothing was moved.")


def _counted(table: Table, rows: Iterable[Row], checksum: Checksum, progress: Progress) -> Iterator[Row]:
    for row in rows:
        checksum.add(table.comparable(row))
        progress.step(table.name)
        yield row
