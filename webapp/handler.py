"""Django's ASGI handler, with a request's middleware and view in one thread.

Django runs synchronous middleware in a thread and asynchronous middleware in the event loop. Views, queries
and some middlewares are synchronous here, so a request switched about fifteen times. That took as long as
the rest of a small response.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any

from asgiref.sync import SyncToAsync, sync_to_async
from django.core.handlers.asgi import ASGIHandler, ASGIRequest
from django.db import close_old_connections
from django.http import StreamingHttpResponse
from django.http.response import HttpResponseBase


class WaitingResponse(StreamingHttpResponse):
    """A response that mostly waits for its next part. Its request has no thread meanwhile."""


class OneThreadHandler(ASGIHandler):
    """Switches to a thread once per request.

    An asynchronous view still runs in the event loop, but occupies its request's thread while it waits: each
    open long poll holds an idle thread.

    Args:
        turn: called with the scope of a request whose body is read; waits until it may have a thread.
    """

    _middleware_chain: Any

    def __init__(self, turn: Callable[[Any], AbstractAsyncContextManager[None]] = nullcontext) -> None:
        self._turn = turn
        super().__init__()

    def load_middleware(self, is_async: bool = False) -> None:  # noqa: ARG002  the framework's signature
        """Build the middleware chain as for WSGI, and call it from the event loop."""
        super().load_middleware(is_async=False)
        in_thread: Any = sync_to_async(self._middleware_chain, thread_sensitive=True)

        async def respond(request: ASGIRequest) -> Any:
            async with self._turn(request.scope):
                return await in_thread(request)

        self._middleware_chain = respond

    @classmethod
    def chunk_bytes[T](cls, data: Sequence[T]) -> Iterator[tuple[Sequence[T], bool]]:
        """Yield a response, which is in memory already, as one part.

        Otherwise a client that reads slowly, without login, would keep the thread and place of its request.
        """
        yield data, True

    async def send_response(
        self, response: HttpResponseBase, send: Callable[[Mapping[str, Any]], Awaitable[None]]
    ) -> None:
        """Send a response; one that waits gives its request's thread back first."""
        if isinstance(response, WaitingResponse):
            await _release_thread()
        await super().send_response(response, send)


async def _release_thread() -> None:
    """End the present request's thread. Its later queries share the sockets' thread."""
    context = SyncToAsync.thread_sensitive_context.get(None)
    # Connections belong to their thread.
    await sync_to_async(close_old_connections)()
    executor = SyncToAsync.context_to_thread_executor.pop(context, None) if context else None
    if executor is not None:
        executor.shutdown(wait=False)
        # Otherwise the next query would start another thread for this request.
        no_context: Any = None
        SyncToAsync.thread_sensitive_context.set(no_context)
