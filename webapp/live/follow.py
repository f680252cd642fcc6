"""One reader's way through a job's events: everything after its cursor, once, in order, for ever."""

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

FRAME_SECONDS = 0.1  # at most ten frames a second
RECHECK_SECONDS = 60.0
QUIET_SECONDS = 15.0


async def follow(user_id: int, job: Job, *, after: int, token_id: int | None = None) -> AsyncIterator[Slice]:
    """Yield slices of a job's events; an empty one each 15 s while nothing happens.

    Args:
        user_id: who reads.
        job: what is read.
        after: the cursor that the reader has.
        token_id: the token that the reader came with, which must stay good.

    Raises:
        NotFound: the reader may not see the job (any more); asked again every minute, and at once when
            a hint says that the reader's rights changed.
        TrainyardError: the account was closed or the token ended; asked together with that.
    """
    root_id, only = job.root_id_or_self, job.pk if job.parent_id is not None else None
    cursor, checked = after, 0.0
    changes = -1  # asked once more while listening, so that no change falls between
    async with hub().watching(root_id) as watch:
        while True:
            heard = hub().access_changes(user_id)
            if heard != changes or time.monotonic() - checked > RECHECK_SECONDS:
                await may_see(user_id, job.pk, token_id)
                checked, changes = time.monotonic(), heard
            found = await hub().read(watch, root_id, cursor)
            cursor = found.cursor
            items = [e for e in found.items if only is None or e.get("job") == only]
            if items:
                yield Slice(items, cursor)
                await asyncio.sleep(FRAME_SECONDS)
            elif not found.items:
                before = time.monotonic()
                await hub().wait(watch, user_id, cursor=cursor, changes=changes, seconds=QUIET_SECONDS)
                if time.monotonic() - before >= QUIET_SECONDS:
                    yield Slice([], cursor)


def _may_see(user_id: int, job_id: int, token_id: int | None = None) -> Job:
    """Return the job if the person, and the token if there is one, may see it now.

    Raises:
        NotFound: not, or not any more.
    """
    user = active_user(user_id)
    if user is None:
        raise TrainyardError("This account is closed.", code="unauthenticated")
    if token_id is not None and not tokens.still_reads(token_id):
        raise TrainyardError("This token was revoked or has expired.", code="unauthenticated")
    return access.get_job(user, job_id)


may_see: Callable[[int, int, int | None], Awaitable[Job]] = database_sync_to_async(_may_see)
