"""A sandbox's process as the worker sees it."""

import contextlib
import os
import select
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from jobs.messages.sandbox import Level, RecordedLevel, SandboxRecord
from workers.confinement.isolation.users import end_processes
from workers.confinement.sandbox import usage
from workers.confinement.sandbox.forked_process import ForkedProcess

END_TIMEOUT = 5.0
"""Seconds until processes that were asked to end are killed."""
GROUP_TIMEOUT, PAUSE = 1.0, 0.01
"""Seconds until a control group without processes can be removed, and between two attempts."""


type Started = subprocess.Popen[bytes] | ForkedProcess
"""The process outside of a sandbox."""


class SandboxProcess:
    """A command in a sandbox. It ends when all its processes have ended.

    Args:
        started: the process outside the sandbox.
        record, temporary: the attributes.
        cgroup: its control group; None without one.

    Attributes:
        record: the sandbox that the run really has.
        temporary: its temporary folder on the machine.
    """

    def __init__(self, started: Started, record: SandboxRecord, temporary: Path, cgroup: Path | None) -> None:
        self._started = started
        self._cgroup = cgroup
        self._ending = threading.RLock()
        self.record = record
        self.temporary = temporary

    @property
    def pid(self) -> int:
        """The process outside the sandbox; those inside are its descendants."""
        return self._started.pid

    @property
    def stdin(self) -> IO[bytes] | None:
        """The standard input, if it is a pipe."""
        return self._started.stdin

    @property
    def stdout(self) -> IO[bytes] | None:
        """The standard output, if it is a pipe."""
        return self._started.stdout

    @property
    def stderr(self) -> IO[bytes] | None:
        """The standard error, if it is a pipe."""
        return self._started.stderr

    @property
    def returncode(self) -> int | None:
        """The command's exit status, or minus the signal that ended it; None if it runs."""
        return exit_status(self.record.level, self._started.returncode)

    def poll(self) -> int | None:
        """Return the current `returncode`."""
        self._started.poll()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end, and return `returncode`.

        Raises:
            subprocess.TimeoutExpired: it still runs.
        """
        status = exit_status(self.record.level, self._started.wait(timeout))
        assert status is not None  # noqa: S101  it has ended
        return status

    def terminate(self) -> None:
        """End all processes, without waiting for it: the others end with the outer one."""
        self._started.send_signal(signal.SIGKILL)

    def processes(self) -> list[int]:
        """Return the pids inside the sandbox.

        Raises:
            usage.Unmeasurable: the kernel does not list the children of processes.
        """
        forked = isinstance(self._started, ForkedProcess)
        return usage.processes(self.pid, joined=forked and self.record.level is Level.BUBBLEWRAP)

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal to the command's process. Nothing happens if it has ended."""
        with self._ending, contextlib.suppress(usage.Unmeasurable):
            for pid in self.processes()[:1]:
                with _open_pidfd(pid) as handle, contextlib.suppress(ProcessLookupError):
                    # Without handles, as on other systems, the pid has to do.
                    if handle is None:
                        os.kill(pid, number)
                    # If the sandbox has ended meanwhile, it may be another process.
                    elif self._started.poll() is None:
                        signal.pidfd_send_signal(handle, number)

    def wait_unreaped(self) -> None:
        """Wait for the end in a thread, so that other threads may still use the pid meanwhile."""
        # The parent of a fork is another process, which does not wait.
        if isinstance(self._started, subprocess.Popen) and hasattr(os, "waitid"):  # not on every system
            with contextlib.suppress(ChildProcessError):
                os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
        self._started.wait()

    def kill(self) -> None:
        """End all processes, and wait until they have ended. After the end, this does nothing."""
        # The ids of the process and of its user may soon be those of others, so nothing acts on them later,
        # also not in another thread.
        with self._ending:
            if self._started.poll() is None:
                self._kill()

    def _kill(self) -> None:
        with contextlib.ExitStack() as handles:
            inner = [handles.enter_context(_open_pidfd(pid)) for pid in self._children()]
            # If it has ended meanwhile, these may be children of another process.
            if self._started.poll() is None:
                self._end_group()
                self.terminate()
                self._wait_briefly()
                for handle in inner:
                    _wait_for(handle)
        if self.record.uid is not None:
            end_processes(self.record.uid)

    def _children(self) -> list[int]:
        try:
            return list(usage.children(self.pid))
        except usage.Unmeasurable:
            return []

    def _end_group(self) -> None:
        if self._cgroup is not None:
            with contextlib.suppress(OSError):
                (self._cgroup / "cgroup.kill").write_text("1")

    def _wait_briefly(self) -> None:
        try:
            self._started.wait(END_TIMEOUT)
        except subprocess.TimeoutExpired:
            self._started.kill()
            self._started.wait()

    def close(self) -> None:
        """End it if it runs, and delete its temporary folder."""
        self.kill()
        for stream in (self.stdin, self.stdout, self.stderr):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        # Folders may be nested deeper than Python can follow.
        with contextlib.suppress(RecursionError):
            shutil.rmtree(self.temporary, ignore_errors=True)
        self._remove_group()

    def _remove_group(self) -> None:
        self._end_group()
        deadline = time.monotonic() + GROUP_TIMEOUT
        while self._cgroup is not None and self._cgroup.exists():
            with contextlib.suppress(OSError):
                self._cgroup.rmdir()
                return
            if time.monotonic() > deadline:
                return
            time.sleep(PAUSE)

    def __enter__(self) -> "SandboxProcess":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@contextlib.contextmanager
def _open_pidfd(pid: int) -> Iterator[int | None]:
    """Open a process handle, which is valid also after its end; None if it has ended."""
    try:
        handle = os.pidfd_open(pid)
    except (OSError, AttributeError):  # other systems have none
        handle = None
    try:
        yield handle
    finally:
        if handle is not None:
            os.close(handle)


def _wait_for(handle: int | None) -> None:
    """Wait for the process that ends all others when the outer one has ended: it ends last."""
    if handle is None:
        return
    # It might have been stopped by a run that has its user.
    with contextlib.suppress(ProcessLookupError):
        signal.pidfd_send_signal(handle, signal.SIGCONT)
    if not select.select([handle], [], [], END_TIMEOUT)[0]:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(handle, signal.SIGKILL)


def exit_status(level: RecordedLevel, status: int | None) -> int | None:
    """Return a command's exit status by that of the process outside its sandbox."""
    # Bubblewrap reports a signal as a shell does.
    if level is Level.BUBBLEWRAP and status is not None and 128 < status < 128 + signal.NSIG:
        return 128 - status
    return status
