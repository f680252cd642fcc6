"""Starts a program that is killed when its parent dies (Linux parent-death signal).

It runs as a plain script without Trainyard's imports, which takes a few milliseconds: it sets the
parent-death signal, checks that the parent is still alive, and executes the program.

The kernel sends the signal when the *thread* that forked ends, so spawn from a thread that lives as long as
the parent.
"""

import ctypes
import os
import signal
import sys
from collections.abc import Sequence

PR_SET_PDEATHSIG = 1


def argv_dying_with_parent(argv: Sequence[str]) -> list[str]:
    """Return a command line that runs `argv` and is killed when the calling process dies."""
    return [sys.executable, "-S", "-E", __file__, str(os.getpid()), *argv]


def main(arguments: Sequence[str]) -> None:
    """Execute `arguments[1:]`, which dies with the process whose pid is `arguments[0]`."""
    parent, program = int(arguments[0]), list(arguments[1:])
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    # It died between fork and prctl, so no signal will be sent.
    if os.getppid() != parent:
        sys.exit(1)
    os.execvp(program[0], program)  # noqa: S606 - a list of arguments, no shell


if __name__ == "__main__":
    main(sys.argv[1:])
