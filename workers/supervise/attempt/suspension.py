"""Suspends a run's processes while its lease may have expired."""

import time
from collections.abc import AsyncIterator

from jobs.messages.events import Warned
from workers.supervise.attempt.held_lease import HeldLease
from workers.supervise.pool.runner_process import RunnerProcess


async def follow_lease(lease: HeldLease, runner: RunnerProcess) -> AsyncIterator[float]:
    """Stop the runner while its lease may have expired. Yield the seconds after each time.

    The iterator ends if the runner could not be stopped.
    """
    while True:
        await lease.until_suspended()
        before = lease.seconds_suspended
        if not runner.suspend():
            return
        await lease.until_allowed()
        runner.resume()
        yield lease.seconds_suspended - before


def was_suspended(seconds: float) -> Warned:
    """Return the warning of a run that was suspended for this time."""
    message = (
        f"The worker could not reach the database. The run was suspended for {seconds:.0f} s, and then "
        "continued where it was."
    )
    return Warned(time=time.time(), code="suspended", message=message)
