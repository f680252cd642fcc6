"""Ties this process to its supervisor: when that dies, the kernel kills us."""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def tie_to_parent(parent: int) -> None:
    """Ask for SIGKILL at the parent's death, then make sure that it has not died already.

    The signal also comes when the parent's spawning *thread* ends; supervisors spawn from a thread
    that lives as long as they do.

    Raises:
        SystemExit: `parent` is not our parent any more.
    """
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) failed")
    if os.getppid() != parent:
        raise SystemExit(f"the supervisor (pid {parent}) is gone; this runner's parent is {os.getppid()}")
