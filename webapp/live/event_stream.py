"""Streams a job's events to one reader: every event after its cursor, once and in order."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable

from channels.db import database_sync_to_async

from jobs import access
from jobs.actions import tokens
from jobs.errors import TrainyardError
from jobs.models import Job
from jobs.queries.events import Slice
from jobs.queries.people import active_user
from webapp.live.hub import hub

# Seconds. A reader gets at most ten frames a second; events of a busy job arrive together.
FRAME_INTERVAL = 0.1
# A hint reports most changes of permissions at once; a lost hint delays one by at most this long.
ACCESS_CHECK_INTERVAL = 60.0
HEARTBEAT_INTERVAL = 15.0


async def stream_events(
    user_id: int, job: Job, *, after: int, token_id: int | None = None
) -> AsyncIterator[Slice]:
    """Yield slices of a job's events, and an empty slice after every 15 s without events of this job.

    Args:
        user_id: the reader.
        job: the job to read.
        after: the cursor up to which the reader has seen the events.
        token_id: the reader's token, if any, which must stay valid.

    Raises:
        NotFound: the reader may not see the job. Checked every minute, and at once when a hint reports that
            the reader's permissions changed.
        TrainyardError: the account was deactivated, or the token expired or was revoked.
    """
    # All events of a job and its children are in the list of the root job.
    root_id, only = job.root_id_or_self, job.pk if job.parent_id is not None else None
    cursor, checked, yielded = after, 0.0, time.monotonic()
    # Differs from any count, so that access is checked once more after subscribing.
    changes = -1
    async with hub().watch(root_id) as watched:
        while True:
            current = hub().access_changes(user_id)
            if current != changes or time.monotonic() - checked > ACCESS_CHECK_INTERVAL:
                await may_see(user_id, job.pk, token_id)
                checked, changes = time.monotonic(), current
            found = await hub().read(watched, root_id, cursor)
            cursor = found.cursor
            items = [e for e in found.items if only is None or e.get("job") == only]
            if items:
                yield Slice(items, cursor)
                yielded = time.monotonic()
                await asyncio.sleep(FRAME_INTERVAL)
                continue
            # Not the time of one wait: events of other jobs under the same root end a wait early.
            left = yielded + HEARTBEAT_INTERVAL - time.monotonic()
            if left <= 0:
                yield Slice([], cursor)
                yielded = time.monotonic()
            elif not found.items:
                await hub().wait(watched, user_id, cursor=cursor, changes=changes, seconds=left)


def _may_see(user_id: int, job_id: int, token_id: int | None = None) -> Job:
    """Return the job if the user, and the token if given, may see it now.

    Raises:
        NotFound: they may not.
    """
    user = active_user(user_id)
    if user is None:
        raise TrainyardError("This account is closed.", code="unauthenticated")
    if token_id is not None and not tokens.still_reads(token_id):
        raise TrainyardError("This token was revoked or has expired.", code="unauthenticated")
    return access.get_job(user, job_id)


may_see: Callable[[int, int, int | None], Awaitable[Job]] = database_sync_to_async(_may_see)
