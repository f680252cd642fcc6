"""Server-sent events: the same list and cursor for `curl -N` and scripts."""

import json
from collections.abc import AsyncIterator

from django.http import StreamingHttpResponse

from jobs.errors import TrainyardError
from jobs.models import Job, User
from webapp.live.follow import follow


def stream(user: User, job: Job, *, after: int, token_id: int | None) -> StreamingHttpResponse:
    """Return an endless answer: one SSE event an event, `id:` its cursor, a comment as heartbeat."""
    response = StreamingHttpResponse(_frames(user, job, after, token_id), content_type="text/event-stream")
    response["Cache-Control"] = "no-store"
    response["X-Accel-Buffering"] = "no"
    return response


async def _frames(user: User, job: Job, after: int, token_id: int | None) -> AsyncIterator[str]:
    yield ": hello\n\n"
    try:
        async for found in follow(user.pk, job, after=after, token_id=token_id):
            if not found.items:
                yield ": heartbeat\n\n"
            for event in found.items:
                yield f"id: {event['cursor']}\nevent: {event['type']}\ndata: {json.dumps(event)}\n\n"
    except TrainyardError as error:
        yield f"event: error\ndata: {json.dumps({'code': error.code})}\n\n"
