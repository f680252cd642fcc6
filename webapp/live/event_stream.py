"""Streams a job's events to one reader: every event after its cursor, once and in order."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass

from channels.db import database_sync_to_async

from jobs import access
from jobs.actions.people import tokens
from jobs.errors import TrainyardError
from jobs.models import Job, User
from jobs.queries.people.people import active_user
from jobs.queries.people.sessions import is_open_session
from jobs.queries.runs.events import Slice
from webapp.live.hub import hub

# Seconds. A reader gets at most ten frames a second; events of a busy job arrive together.
FRAME_INTERVAL = 0.1
# A hint reports most changes of permissions at once; a lost hint delays one by at most this long.
ACCESS_CHECK_INTERVAL = 15.0
HEARTBEAT_INTERVAL = 15.0


@dataclass(frozen=True)
class Reader:
    """The user who reads events, and the connection's token or session, which must stay valid.

    Args:
        user_id: the user.
        token_id: a script's token.
        session: the stored key for a page's session.
    """

    user_id: int
    token_id: int | None = None
    session: str | None = None


async def stream_events(reader: Reader, job: Job, *, after: int) -> AsyncIterator[Slice]:
    """Yield slices with a job's events, and an empty slice after every 15 s without such events.

    Args:
        reader: the reader.
        job: the job to read.
        after: the cursor up to which the reader has seen the events.

    Raises:
        NotFound: the reader may not see the job. Checked every 15 s, and at once when a hint reports that the
            reader's permissions or sessions changed.
        TrainyardError: the account was deactivated, or the session or token ended.
    """
    # All events of a job and its children are in the list of the root job.
    root_id, only = job.root_id_or_self, job.pk if job.parent_id is not None else None
    cursor, checked, yielded = after, 0.0, time.monotonic()
    # Differs from any count, so that access is checked once more after subscribing.
    changes = -1
    async with hub().watch(root_id) as watched:
        while True:
            current = hub().access_changes(reader.user_id)
            if current != changes or time.monotonic() - checked > ACCESS_CHECK_INTERVAL:
                await may_see(reader, job.pk)
                checked, changes = time.monotonic(), current
            batch = await hub().read(watched, root_id, cursor)
            cursor = batch.cursor
            items = [e for e in batch.items if only is None or e.get("job") == only]
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
            elif not batch.items:
                await hub().wait(watched, reader.user_id, cursor=cursor, changes=changes, seconds=left)


def _require_valid(reader: Reader) -> User:
    """Return a connection's user.

    Raises:
        TrainyardError: the account was deactivated, the session or token ended, or the user of a session
            lacks a required second factor.
    """
    user = active_user(reader.user_id)
    if user is None:
        raise TrainyardError("This account is closed.", code="unauthenticated")
    if reader.token_id is not None and not tokens.still_reads(reader.token_id):
        raise TrainyardError("This token was revoked or has expired.", code="unauthenticated")
    if reader.session is not None and not is_open_session(reader.session, user):
        raise TrainyardError("This session has ended.", code="unauthenticated")
    # As on all pages; tokens keep reading.
    if reader.session is not None and access.lacks_second_factor(user):
        raise access.second_factor_required()
    return user


def _may_see(reader: Reader, job_id: int) -> Job:
    """Return the job if the reader may see it now.

    Raises:
        NotFound: they may not.
        TrainyardError: the connection is not valid any more.
    """
    return access.get_job(_require_valid(reader), job_id)


require_valid: Callable[[Reader], Awaitable[User]] = database_sync_to_async(_require_valid)
may_see: Callable[[Reader, int], Awaitable[Job]] = database_sync_to_async(_may_see)
