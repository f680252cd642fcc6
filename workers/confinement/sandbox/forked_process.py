"""A forked process as `subprocess.Popen` would show it, for threads beside the event loop."""

import asyncio
import os
import select
import signal
import subprocess
import threading
import weakref
from contextlib import suppress
from typing import IO

KILLED = -int(signal.SIGKILL)
# Seconds from the end to the message of the fork server.
REPORT_TIMEOUT = 5.0


class ForkedProcess:
    """A forked process, with the `subprocess.Popen` methods that a sandbox uses.

    The fork server is its parent, so its status comes as a message.

    Args:
        pid: the process.
        ended: gets its status, in the event loop.
        stdout: the reading end of a pipe.
    """

    stdin = stderr = None

    def __init__(self, pid: int, ended: "asyncio.Future[int]", stdout: IO[bytes] | None = None) -> None:
        self.pid, self.stdout = pid, stdout
        self._loop = ended.get_loop()
        self._status: int | None = None
        self._reported = threading.Event()
        ended.add_done_callback(self._report)
        try:
            # It stays that of this process when the pid belongs to another one.
            self._handle: int | None = os.pidfd_open(pid)
        except ProcessLookupError:
            self._handle = None
        else:
            weakref.finalize(self, os.close, self._handle)

    def _report(self, ended: "asyncio.Future[int]") -> None:
        self._status = KILLED if ended.cancelled() else ended.result()
        self._reported.set()

    @property
    def returncode(self) -> int | None:
        """The status; `KILLED` if it has ended and its status is not known yet; None if it runs."""
        if self._status is not None:
            return self._status
        return KILLED if self._has_ended(0) else None

    def poll(self) -> int | None:
        """Return `returncode`."""
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end and for the status, and return it.

        Raises:
            subprocess.TimeoutExpired: it still runs.
        """
        if not self._has_ended(timeout):
            raise subprocess.TimeoutExpired("a fork in a sandbox", timeout or 0.0)
        # The message is received in the event loop, which must not wait for itself.
        if not self._is_in_loop():
            self._reported.wait(REPORT_TIMEOUT)
        return KILLED if self._status is None else self._status

    def _has_ended(self, timeout: float | None) -> bool:
        if self._handle is None:
            return True
        # Unlike select(2), it takes descriptors of any number.
        ends = select.poll()
        ends.register(self._handle, select.POLLIN)
        return bool(ends.poll(None if timeout is None else timeout * 1000))

    def _is_in_loop(self) -> bool:
        try:
            return asyncio.get_running_loop() is self._loop
        except RuntimeError:
            return False

    def send_signal(self, sig: int) -> None:
        """Send a signal, unless it has ended."""
        if self._handle is not None:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._handle, sig)

    def kill(self) -> None:
        """Kill it."""
        self.send_signal(signal.SIGKILL)
