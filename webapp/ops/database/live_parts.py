"""Finds parts of an installation that still use its database, also those on other machines."""

import fcntl
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from jobs import database_use
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
PATIENCE_SECONDS = 1.0
"""How long a part that is just ending, or is refused at its start, is waited for."""


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


@contextmanager
def exclusive(database: Mapping[str, Any], home: Path) -> Iterator[None]:
    """Have the database alone: no part of this machine uses it, and none starts meanwhile.

    Args:
        database: Django's.
        home: the folder of the process.

    Raises:
        OpsError: a part uses it; the message names it.
    """
    file = database_use.lock_file(database, home)
    descriptor = database_use.open_lock(file)
    try:
        if not _lock(descriptor):
            raise OpsError(
                f"The database is in use by {_holders(file)}. Stop all parts on all machines first."
            )
        yield
    finally:
        os.close(descriptor)


def _lock(descriptor: int) -> bool:
    until = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() > until:
                return False
            time.sleep(0.05)


def _holders(file: Path) -> str:
    """Name the processes that have the file open."""
    found = [
        f"the process {process.pid} ({' '.join(arguments[1:5])})"
        for process in psutil.process_iter()
        if process.pid != os.getpid() and (arguments := _command_if_open(process, file))
    ]
    # Those of other users, and of other containers, are not visible.
    named = found or [f"a process that is not visible from here and has locked {file}"]
    return ", ".join(named[:_NAMED]) + (" and others" if len(named) > _NAMED else "")


def _command_if_open(process: psutil.Process, file: Path) -> list[str]:
    try:
        return process.cmdline() if any(each.path == str(file) for each in process.open_files()) else []
    except (psutil.Error, OSError):
        return []
