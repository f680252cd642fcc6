"""Reaps what sandboxes leave to the prediction server, which adopts the forks of its fork server.

A process outside a sandbox may end before those inside, which then become children of the server.
"""

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Self

from workers.confinement.sandbox.process import END_TIMEOUT, PAUSE, SandboxProcess
from workers.confinement.sandbox.usage import Unmeasurable, children, processes


@contextmanager
def reaping() -> Iterator[None]:
    """Reap what sandboxes without `Orphans` leave, level trials and builds, that ran in this block."""
    try:
        yield
    finally:
        deadline = time.monotonic() + END_TIMEOUT
        # Other new children, such as forks of the fork server, are left alone.
        while _reap_unseen() and time.monotonic() < deadline:
            time.sleep(PAUSE)


def _own_children() -> list[int]:
    try:
        return list(children(os.getpid()))
    except (Unmeasurable, OSError):
        return []


class Orphans:
    """The processes in a sandbox, below the one outside it.

    If the process outside is killed, some become children of the server, which adopts the forks from its
    fork server, and have to be reaped. When the block ends they have been killed already.
    """

    def __init__(self, process: SandboxProcess) -> None:
        self._process = process
        self._handles: dict[int, int] = {}
        self._looking = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._looking:
            deadline = time.monotonic() + END_TIMEOUT
            # Each may be the child of another one that has not ended yet.
            while (_reap_unseen(self._process.pid) or self._forget_gone()) and time.monotonic() < deadline:
                time.sleep(PAUSE)
            for handle in self._handles.values():
                os.close(handle)
            self._handles.clear()

    def look(self) -> None:
        """Find the current processes."""
        if not hasattr(os, "pidfd_open"):
            return
        with self._looking, suppress(Unmeasurable, OSError):
            self._forget_gone()
            # Its pid may be that of another process soon.
            if self._process.poll() is not None:
                return
            for pid in (*children(self._process.pid), *processes(self._process.pid)):
                if pid not in self._handles:
                    self._handles[pid] = os.pidfd_open(pid)

    def _forget_gone(self) -> bool:
        """Forget the processes that have been reaped; return whether there are others."""
        for pid in [pid for pid, handle in self._handles.items() if _is_gone(handle)]:
            os.close(self._handles.pop(pid))
        return bool(self._handles)


def _reap_unseen(outside: int = 0) -> bool:
    """Reap what sandboxes have left to this process; return whether any of it has not ended yet.

    Args:
        outside: the pid of the process that was outside a sandbox, and led the group of its helpers.
    """
    have_ended = []
    for pid in _own_children():
        with suppress(ProcessLookupError, ChildProcessError):
            is_helper = pid != outside and os.getpgid(pid) == outside
            # Only what ran in a sandbox has further PID namespaces.
            if is_helper or _pid_namespaces(pid) > _pid_namespaces(os.getpid()):
                have_ended.append(os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG) is not None)
    return not all(have_ended)


def _pid_namespaces(pid: int) -> int:
    """Return in how many PID namespaces a process has a pid, as far as this process sees."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((len(line.split()) - 1 for line in lines if line.startswith("NSpid:")), 0)


def _is_gone(handle: int) -> bool:
    """Return whether nothing is left of a process. If it has ended as this process's child, it is reaped."""
    with suppress(ChildProcessError):
        return os.waitid(os.P_PIDFD, handle, os.WEXITED | os.WNOHANG) is not None
    try:
        signal.pidfd_send_signal(handle, 0)
    except ProcessLookupError:
        return True
    # It is there, and has another user.
    except PermissionError:
        pass
    return False
