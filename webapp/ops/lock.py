"""Locks a home, so that only one `up` runs on it. The kernel releases the lock when the holder dies."""

import fcntl
import os
from pathlib import Path

from webapp.ops.errors import OpsError


class HomeLock:
    """An exclusive lock on a file that contains the holder's pid."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    def acquire(self) -> None:
        """Acquire the lock.

        Raises:
            OpsError: another process holds it; the message names its pid.
        """
        # Not truncated before it is locked: the message of a refusal reads the holder's pid from it.
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise OpsError(
                f"Trainyard already runs on {self._path.parent.parent} (pid {self.holder() or 'unknown'}). "
                "Stop it with Ctrl-C or `kill`, or set TRAINYARD_HOME to another folder."
            ) from None
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        # Python's descriptors are not inheritable, so no child can keep the lock.
        self._descriptor = descriptor

    def release(self) -> None:
        """Release the lock if it is held."""
        if self._descriptor is not None:
            # Emptied, not deleted: a process that has opened a deleted file would lock that one.
            os.ftruncate(self._descriptor, 0)
            os.close(self._descriptor)
            self._descriptor = None

    def holder(self) -> int | None:
        """Return the pid written by the holder, if any."""
        try:
            return int(self._path.read_text())
        except (OSError, ValueError):
            return None
