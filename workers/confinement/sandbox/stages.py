"""The command line for a process in a sandbox: `stages.main(DESCRIPTOR, STAGE)`, see `launch`.

The plan is read from an open file, since all users on a machine can read command lines.
"""

import os

from workers.confinement.sandbox.enter import become, enter, execute, fail
from workers.confinement.sandbox.plan import Plan


def main(descriptor: int, stage: str) -> None:
    """Run a plan's stage `outer` or `inner`, or `hold` for a forked process."""
    try:
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
    except Exception as error:  # noqa: BLE001  whatever it is, the command must not run
        fail(error)
