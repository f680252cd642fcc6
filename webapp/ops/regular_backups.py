"""Makes backups in a folder at regular times, and deletes the oldest ones."""

import fcntl
import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from webapp.ops.errors import OpsError

PREFIX, SUFFIX, PARTIAL = "trainyard-", ".tar", ".partial"
RETRY = timedelta(minutes=10)
"""The time until a failed backup is tried again, if the next one is not due before."""
LATE = 2
"""A backup is late after so many of its intervals."""


def backups_in(folder: Path) -> Sequence[Path]:
    """Return the complete backups in a folder, the oldest first."""
    return sorted(folder.glob(f"{PREFIX}*{SUFFIX}"))


def back_up_into(folder: Path, back_up: Callable[[Path], object], *, keep: int) -> Path:
    """Make a backup, which is read back, and then delete all but the newest ones.

    Args:
        folder: the folder, which may have other files.
        back_up: writes the file, and creates it only once it is complete and was read back.
        keep: how many backups are left.

    Returns:
        The new file.
    """
    _remove_left(folder)
    # Sorted by name, they are sorted by time.
    target = folder / f"{PREFIX}{datetime.now(UTC):%Y%m%dT%H%M%SZ}{SUFFIX}"
    back_up(target)
    # Never before there is a new one: if none can be made, the old ones stay.
    for old in backups_in(folder)[:-keep]:
        old.unlink()
    return target


def seconds_until_due(folder: Path, every: timedelta) -> float:
    """Return the time until the next backup; 0 if it is due. A restarted service does not begin again."""
    if not (present := backups_in(folder)):
        return 0.0
    age = time.time() - present[-1].stat().st_mtime
    # A file from the future, after the clock was set back, is no reason to wait longer than the interval.
    return max(0.0, min(every.total_seconds(), every.total_seconds() - age))


def require_recent(folder: Path, every: timedelta) -> None:
    """Check that a backup is not late.

    Raises:
        OpsError: there is none, or the newest one is older than two intervals.
    """
    if not (present := backups_in(folder)):
        raise OpsError(f"There is no backup in {folder}; the log of its service has the reason.")
    age = timedelta(seconds=int(time.time() - present[-1].stat().st_mtime))
    if age > LATE * every:
        raise OpsError(
            f"The newest backup, {present[-1]}, was made {age} ago; its service's log has the reason."
        )


def _remove_left(folder: Path) -> None:
    """Remove the files that killed backups have left. One that is being written is locked."""
    for partial in folder.glob(f".{PREFIX}*{SUFFIX}{PARTIAL}"):
        with suppress(OSError):
            descriptor = os.open(partial, os.O_RDWR)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                partial.unlink()
            finally:
                os.close(descriptor)
