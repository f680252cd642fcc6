"""What this process asks of the kernel: to die with its parent, and to go by a name."""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1
PR_SET_NAME = 15


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
        raise SystemExit(f"whoever started this process (pid {parent}) is gone; its parent is {os.getppid()}")


def name_process(name: str) -> None:
    """Go by `name`, of at most 15 characters, in `ps` and `top`: a fork has its parent's command line."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_NAME, name.encode(), 0, 0, 0)
