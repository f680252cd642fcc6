"""`python -m workers.runner --events-fd N --parent PID`: one task after another, events out, control in."""

import argparse
import faulthandler
import os
import signal
import sys

from workers.runner.control_reader import Inbox
from workers.runner.event_writer import Outlet
from workers.runner.parent_death import name_process, tie_to_parent
from workers.runner.serve import Runner


def main() -> None:
    """Tie this process to its parent and serve its supervisor."""
    parser = argparse.ArgumentParser(prog="workers.runner", description=__doc__)
    parser.add_argument("--events-fd", type=int, required=True, help="file descriptor that takes events")
    parser.add_argument("--parent", type=int, help="pid of the process that started us: its death is ours")
    options = parser.parse_args()
    if options.parent is not None:
        tie_to_parent(options.parent)
    name_process("ty-runner")
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1)  # the supervisor asks a hanging run where it stands
    os.set_inheritable(options.events_fd, False)
    inbox = Inbox()
    inbox.listen()
    Runner(Outlet(options.events_fd), inbox).serve()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # threads of XLA may take seconds to join; everything that matters is flushed


if __name__ == "__main__":
    main()
