"""Locks an installation's database: parts share the lock, and what replaces the database has it alone.

A web server has no lease in the database that would show that it runs. The kernel ends the lock with the
process.
"""

import fcntl
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from jobs.errors import DatabaseReplaced

SUFFIX = ".parts"
_held: dict[Path, int] = {}
"""The descriptors of the locks that this process shares."""


def lock_file(database: Mapping[str, Any], home: Path) -> Path:
    """Return the file that is locked.

    It is beside a SQLite database, which parts with different homes may use. That of a server is in the home.

    Args:
        database: Django's.
        home: the folder of the process.
    """
    name = Path(str(database["NAME"]))
    if str(database["ENGINE"]).endswith("sqlite3") and name.is_absolute():
        file = name.resolve()
        return file.with_name(file.name + SUFFIX)
    return home.resolve() / "run" / f"database{SUFFIX}"


def open_lock(file: Path) -> int:
    """Open the file, and create it if it is missing. A child does not inherit the descriptor."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    if os.geteuid() == 0:
        # A command of root must not keep the parts of another user from starting.
        owner = file.parent.stat()
        with suppress(OSError):
            os.fchown(descriptor, owner.st_uid, owner.st_gid)
    return descriptor


def share(database: Mapping[str, Any], home: Path) -> None:
    """Use the database until this process ends.

    Args:
        database: Django's.
        home: the folder of the process.

    Raises:
        DatabaseReplaced: it is being restored or moved.
    """
    file = lock_file(database, home)
    if file in _held:
        return
    descriptor = open_lock(file)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise DatabaseReplaced(_replaced(database["NAME"], file)) from None
    _held[file] = descriptor


def replacement_of(file: Path) -> str | None:
    """Return why a SQLite database that does not exist may do so soon: it is being restored or moved.

    Args:
        file: the database.
    """
    lock = file.resolve().with_name(file.name + SUFFIX)
    try:
        descriptor = os.open(lock, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _replaced(file, lock)
    finally:
        os.close(descriptor)
    return None


def _replaced(database: object, lock: Path) -> str:
    return (
        f"The database {database} is being restored or moved by another process, which has locked {lock}. "
        "Start again once it has ended."
    )


def _forget() -> None:
    """Close the copies of the descriptors, with which a fork would keep the lock of a part that ended."""
    while _held:
        os.close(_held.popitem()[1])


os.register_at_fork(after_in_child=_forget)
