"""Ends a worker's runs before it ends: each writes a checkpoint and resumes on another worker."""

import asyncio
import logging

from jobs.messages.worker_end import KILL_SECONDS, seconds_for_runs
from workers.node.membership import Membership
from workers.supervise.attempt_end import AttemptEnd
from workers.supervise.timing import Timing

log = logging.getLogger(__name__)


async def drain(membership: Membership, timing: Timing, killed: asyncio.Event) -> None:
    """Let every run write a checkpoint and its end, so that it resumes on another worker at once.

    Args:
        membership: the worker's.
        timing: how long a checkpoint and its copy may take.
        killed: set if the operator does not wait for checkpoints.
    """
    attempts = membership.attempts
    log.info("shutting down; waiting for the checkpoints of %d runs", len(attempts.attempt_ids))
    await membership.leave()
    attempts.drain()
    seconds = seconds_for_runs(timing.grace, timing.upload_grace)
    empty = asyncio.create_task(attempts.wait_until_empty(seconds))
    killing = asyncio.create_task(killed.wait())
    await asyncio.wait([empty, killing], return_when=asyncio.FIRST_COMPLETED)
    killing.cancel()
    empty.cancel()
    # Attempts that have ended keep their end. The others resume elsewhere; this costs them no restart.
    attempts.end_all(AttemptEnd.drained())
    # Without a written end, the lease would expire, which costs one.
    attempts.skip_uploads()
    if not await attempts.wait_until_empty(KILL_SECONDS):
        attempts.abandon()
    await membership.deregister()
