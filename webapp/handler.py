"""Django's ASGI handler, with all middleware and the view of a request in one thread.

Django runs what is synchronous in a thread and what is not in the event loop, middleware by middleware. Views
and queries here are synchronous, and so are some of the middlewares, so a request went back and forth about
fifteen times, which for a small answer cost as much as the rest of it.
"""

from typing import Any

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIHandler


class OneThreadHandler(ASGIHandler):
    """Changes to a thread once a request.

    An asynchronous view still runs in the event loop, but holds its request's thread while it waits: each
    open long poll costs a thread that is idle.
    """

    _middleware_chain: Any

    def load_middleware(self, is_async: bool = False) -> None:  # noqa: ARG002  the framework's signature
        """Chain all middleware as for WSGI, and enter the chain from the event loop."""
        super().load_middleware(is_async=False)
        self._middleware_chain = sync_to_async(self._middleware_chain, thread_sensitive=True)
