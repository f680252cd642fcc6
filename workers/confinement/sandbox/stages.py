"""The command line for a process in a sandbox: `stages.main(DESCRIPTOR, STAGE)`, see `launch`.

The plan is read from an open file, since all users on a machine can read command lines.
"""

import os
from typing import NoReturn

from workers.confinement.sandbox.enter import become, enter, execute, guarded
from workers.confinement.sandbox.plan import Plan


def main(descriptor: int, stage: str) -> NoReturn:
    """Run a plan's stage `outer` or `inner`, or `hold` for a forked process."""
    guarded(_run, descriptor, stage)


def _run(descriptor: int, stage: str) -> NoReturn:
    if stage == "hold":
        # Only this stage needs it.
        from workers.confinement.sandbox import forked

        forked.hold(descriptor)
    plan = Plan.read(descriptor)
    if stage == "inner":
        os.close(descriptor)
        # Bubblewrap itself must not be in the group of the command.
        os.setsid()
        become(plan, execute)
    # Bubblewrap passes the file on.
    enter(plan, execute, lambda: (descriptor, "inner"), keep=descriptor)
