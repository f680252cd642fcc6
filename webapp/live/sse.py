"""Streams a job's events as server-sent events, with the same cursors as the WebSocket."""

import json
from collections.abc import AsyncIterator

from jobs.errors import TrainyardError
from jobs.models import Job
from webapp.handler import WaitingResponse
from webapp.live import readers
from webapp.live.event_stream import Reader, stream_events


def stream(reader: Reader, job: Job, *, after: int) -> WaitingResponse:
    """Return an endless response: one message per event, with the cursor as its id, and heartbeats.

    Raises:
        Throttled: the user, or all users together, have too many streams.
    """
    readers.check(readers.STREAMS, reader.user_id)
    response = WaitingResponse(_frames(reader, job, after), content_type="text/event-stream")
    response["Cache-Control"] = "no-store"
    # nginx would otherwise collect events until its buffer is full.
    response["X-Accel-Buffering"] = "no"
    return response


async def _frames(reader: Reader, job: Job, after: int) -> AsyncIterator[str]:
    yield ": hello\n\n"
    try:
        # Counted here, because a response that is never sent is never iterated.
        with readers.counted(readers.STREAMS, reader.user_id):
            async for batch in stream_events(reader, job, after=after):
                if not batch.items:
                    yield ": heartbeat\n\n"
                for event in batch.items:
                    yield f"id: {event['cursor']}\nevent: {event['type']}\ndata: {json.dumps(event)}\n\n"
    except TrainyardError as error:
        yield f"event: error\ndata: {json.dumps({'code': error.code})}\n\n"
