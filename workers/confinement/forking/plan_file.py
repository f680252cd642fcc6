"""The file through which a fork gets its sandbox plan. Only one process may carry out the plan.

A fork server that does not answer in time may still fork later. The process that asked for the fork then
starts another one with the same files, user and connection, so both `claim` the plan first.
"""

import fcntl
import os
from contextlib import ExitStack

from workers.confinement.sandbox.plan import Plan


def create(plan: Plan) -> int:
    """Return the descriptor of a new file in memory with the plan."""
    file = os.memfd_create("plan", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    with ExitStack() as undo:
        undo.callback(os.close, file)
        plan.write(file)
        undo.pop_all()
    return file


def claim(file: int) -> bool:
    """Return whether the plan is this process' own to carry out: it is for the first one that asks."""
    try:
        # The kernel adds this seal once only.
        fcntl.fcntl(file, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SEAL)
    except PermissionError:
        return False
    return True
