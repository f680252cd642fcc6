"""One `up` for one home: a lock that the kernel gives back when its holder dies, however it dies."""

import fcntl
import os
from pathlib import Path

from webapp.ops.errors import OpsError


class HomeLock:
    """An exclusive lock on a file, holding the pid of its owner as text."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    def acquire(self) -> None:
        """Take the lock.

        Raises:
            OpsError: another process holds it; the text names its pid.
        """
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
        self._descriptor = descriptor  # not inheritable: no child can keep the lock alive

    def release(self) -> None:
        """Give the lock back; harmless when it is not held."""
        if self._descriptor is not None:
            os.ftruncate(self._descriptor, 0)
            os.close(self._descriptor)
            self._descriptor = None

    def holder(self) -> int | None:
        """Return the pid written by the holder, if any."""
        try:
            return int(self._path.read_text())
        except (OSError, ValueError):
            return None
