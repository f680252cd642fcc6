"""The process outside a sandbox. It waits for its command, and ends the remaining processes."""

import contextlib
import os
import resource
import signal
import time
from typing import NoReturn

# Seconds. Processes that were killed may need a moment to end.
END_TIMEOUT = 10.0
PAUSE = 0.002


def close_all_but(*descriptors: int) -> None:
    """Close all files in this process, so that no stream of the command stays open in it."""
    last = -1
    for descriptor in sorted(descriptors):
        os.closerange(last + 1, descriptor)
        last = descriptor
    os.closerange(last + 1, max(last + 1, os.sysconf("SC_OPEN_MAX")))


def wait_for(pid: int) -> int:
    """Wait for a child, and for all others that end before it. Return its status."""
    while True:
        ended, status = os.wait()
        if ended == pid:
            return status


def end_like(status: int) -> NoReturn:
    """End this process with another one's exit status or signal."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if number != signal.SIGKILL:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [number])
        os.kill(os.getpid(), number)
    os._exit(os.waitstatus_to_exitcode(status) if os.WIFEXITED(status) else 1)


class Group:
    """The processes in a command's own process group.

    Args:
        command: the pid that leads the group.
        uid: the processes' exclusive user; None if others have it, too.
    """

    def __init__(self, command: int, uid: int | None) -> None:
        self._command = command
        self._uid = uid

    def wait(self) -> int:
        """Wait for the command, end the rest, and return the command's status."""
        status = None
        if not hasattr(os, "waitid"):  # not on every system
            _, status = os.waitpid(self._command, 0)
            self.end()
        while status is None:
            # The command stays a zombie until its group has ended, so that no other process gets its pid.
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
            if ended is not None and ended.si_pid == self._command:
                self.end()
                _, status = os.waitpid(self._command, 0)
            elif ended is not None:
                os.waitpid(ended.si_pid, 0)
        end_descendants(self._uid)
        return status

    def end(self) -> None:
        """Kill the command and everything that it started."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._command, signal.SIGKILL)
        _kill_user(self._uid)


def end_descendants(uid: int | None) -> None:
    """Kill this subreaper's descendants, and wait for them. Orphans have become its children.

    Args:
        uid: the sandbox's exclusive user; None if others have it, too.
    """
    deadline = time.monotonic() + END_TIMEOUT
    while time.monotonic() < deadline:
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        _kill_user(uid)
        for pid in _children():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(PAUSE)


def _kill_user(uid: int | None) -> None:
    """Kill all of a user's processes at once: a process that forks cannot escape."""
    if uid is None:
        return
    killer = os.fork()
    if killer == 0:
        with contextlib.suppress(OSError):
            os.setresuid(uid, uid, uid)
            if os.getuid() == uid:
                os.kill(-1, signal.SIGKILL)
        os._exit(0)
    with contextlib.suppress(ChildProcessError):
        os.waitpid(killer, 0)


def _children() -> list[int]:
    try:
        with open(f"/proc/self/task/{os.getpid()}/children") as file:  # noqa: PTH123
            return [int(pid) for pid in file.read().split()]
    except OSError:
        return []
