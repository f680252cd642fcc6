"""Ends a model child when its router dies."""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def die_with_parent(parent: int) -> None:
    """Have the kernel kill this process when its parent dies, and exit if it already has.

    The signal is sent when the *thread* that spawned this process ends, so the router spawns from its main
    thread. On systems other than Linux the child ends when its socket is closed.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit(0)
