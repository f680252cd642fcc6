"""Sets the parent-death signal, the subreaper flag, the name (Linux prctl) and the group of this process."""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1
PR_SET_NAME = 15
PR_SET_CHILD_SUBREAPER = 36


def die_with_parent(parent: int) -> None:
    """Have the kernel send SIGKILL when the parent dies, and check that it has not died already.

    The signal is also sent when the parent's spawning *thread* ends, so supervisors spawn from a thread that
    lives as long as they do. Systems other than Linux have no such signal: there, runners and model children
    end when the pipe or socket to their parent is closed.

    Raises:
        SystemExit: `parent` is not the parent of this process any more.
    """
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) failed")
    # The parent may have died before the call above. Its children then have another parent, and get no
    # signal.
    if os.getppid() != parent:
        raise SystemExit(
            f"the process that started this one (pid {parent}) has ended; the parent is now {os.getppid()}"
        )


def lead_group_of_session() -> None:
    """Leave the process group of the parent, but not its session.

    A signal to the parent's group, such as Ctrl-C, does not reach this process. Linux shares a busy CPU among
    sessions first (`sched_autogroup_enabled`): in a session of its own, a process that answers its parent
    would wait for other sessions at each request, up to 3 ms, while its parent still has time left.
    """
    # The leader of a session leads its group already, and may not change it.
    if os.getpgrp() != os.getpid():
        os.setpgid(0, 0)


def become_subreaper() -> bool:
    """Make descendants whose parent ends children of this process; return whether the kernel agreed."""
    if sys.platform != "linux":
        return False
    return bool(ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)


def set_process_name(name: str) -> None:
    """Set the name shown by `ps` and `top`, at most 15 characters. A fork has its parent's command line."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_NAME, name.encode(), 0, 0, 0)
