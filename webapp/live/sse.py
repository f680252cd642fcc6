"""Streams a job's events as server-sent events, with the same cursors as the WebSocket."""

import json
from collections.abc import AsyncIterator

from django.http import StreamingHttpResponse

from jobs.errors import TrainyardError
from jobs.models import Job, User
from webapp.live.event_stream import stream_events


def stream(user: User, job: Job, *, after: int, token_id: int | None) -> StreamingHttpResponse:
    """Return an endless response: one message per event, with the cursor as its id, and heartbeats."""
    response = StreamingHttpResponse(_frames(user, job, after, token_id), content_type="text/event-stream")
    response["Cache-Control"] = "no-store"
    # nginx would otherwise collect events until its buffer is full.
    response["X-Accel-Buffering"] = "no"
    return response


async def _frames(user: User, job: Job, after: int, token_id: int | None) -> AsyncIterator[str]:
    yield ": hello\n\n"
    try:
        async for found in stream_events(user.pk, job, after=after, token_id=token_id):
            if not found.items:
                yield ": heartbeat\n\n"
            for event in found.items:
                yield f"id: {event['cursor']}\nevent: {event['type']}\ndata: {json.dumps(event)}\n\n"
    except TrainyardError as error:
        yield f"event: error\ndata: {json.dumps({'code': error.code})}\n\n"
