"""Turns the output of a program that is not ours into JSON lines: `python -m jobs.logs.converter PART`.

A process becomes the broker by executing it, so it has no thread left that could read a pipe. The converter
is a process of its own, which ends when the last writer of the pipe has ended.
"""

import os
import signal
import subprocess
import sys

from jobs.logs.foreign_output import forward_lines
from jobs.program import ROOT


def convert_later_output(part: str) -> None:
    """Let a converter write all later output of this process, and of the program that it executes."""
    reading, writing = os.pipe()
    subprocess.Popen(  # noqa: S603 - a list of arguments, no shell
        [sys.executable, "-m", "jobs.logs.converter", part],
        cwd=ROOT,
        stdin=reading,
        stdout=2,
        # A signal of the terminal must not reach it: the program may write why it ends.
        start_new_session=True,
    )
    os.dup2(writing, 1)
    os.dup2(writing, 2)
    os.close(reading)
    os.close(writing)


def main() -> None:
    """Convert standard input."""
    # A service manager signals all processes of a service, but the program may still write.
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)

    def write(line: str) -> None:
        sys.stdout.write(line)
        sys.stdout.flush()

    forward_lines(0, write, sys.argv[1])


if __name__ == "__main__":
    main()
