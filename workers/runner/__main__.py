"""A runner's command line: `python -m workers.runner --events-fd N --parent PID`."""

import argparse
import faulthandler
import os
import signal
import sys

from workers.runner.control_reader import ControlReader
from workers.runner.event_writer import EventWriter
from workers.runner.serve import Runner
from workers.system.kernel import set_process_name
from workers.system.parent_death import die_with_parent


def main() -> None:
    """Set up parent death signal, control reader and event writer, and serve tasks."""
    parser = argparse.ArgumentParser(prog="workers.runner", description=__doc__)
    parser.add_argument("--events-fd", type=int, required=True, help="file descriptor to write events to")
    parser.add_argument("--parent", type=int, help="pid of the parent process, with which this one dies")
    options = parser.parse_args()
    if options.parent is not None:
        die_with_parent(options.parent)
    set_process_name("ty-runner")
    faulthandler.enable()
    # The supervisor requests the stack traces of a stalled run by this signal.
    faulthandler.register(signal.SIGUSR1)
    # A program that a task starts must not keep the event pipe open.
    os.set_inheritable(options.events_fd, False)
    control = ControlReader()
    control.start()
    Runner(EventWriter(options.events_fd), control).serve()
    sys.stdout.flush()
    sys.stderr.flush()
    # Joining XLA's threads may take seconds, and everything is flushed.
    os._exit(0)


if __name__ == "__main__":
    main()
