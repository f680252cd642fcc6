"""Start a program that dies with its parent.

Run as a plain script (it imports nothing of ours, so it costs a few milliseconds): it asks the kernel to
kill this process when the parent goes, checks that the parent has not gone already, and becomes the program.

The kernel fires when the *thread* that forked ends, so spawn from a thread that lives as long as the parent.
"""

import ctypes
import os
import signal
import sys
from collections.abc import Sequence

PR_SET_PDEATHSIG = 1


def dying_with_parent(argv: Sequence[str]) -> list[str]:
    """Return the command line that runs `argv` so that it dies with the calling process."""
    return [sys.executable, "-S", "-E", __file__, str(os.getpid()), *argv]


def main(arguments: Sequence[str]) -> None:
    """Become `arguments[1:]`, bound to the life of the process with pid `arguments[0]`."""
    parent, program = int(arguments[0]), list(arguments[1:])
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it died between fork and prctl: nobody would ever tell us
        sys.exit(1)
    os.execvp(program[0], program)  # noqa: S606 - an argv list from our own code, no shell


if __name__ == "__main__":
    main(sys.argv[1:])
