"""Django's ASGI handler, with all middleware and the view of a request in one thread.

Django runs synchronous middleware in a thread and asynchronous middleware in the event loop. Views, queries
and some middlewares are synchronous here, so a request switched about fifteen times. That took as long as
the rest of a small response.
"""

from typing import Any

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIHandler


class OneThreadHandler(ASGIHandler):
    """Switches to a thread once per request.

    An asynchronous view still runs in the event loop, but occupies its request's thread while it waits: each
    open long poll holds an idle thread.
    """

    _middleware_chain: Any

    def load_middleware(self, is_async: bool = False) -> None:  # noqa: ARG002  the framework's signature
        """Build the middleware chain as for WSGI, and call it from the event loop."""
        super().load_middleware(is_async=False)
        self._middleware_chain = sync_to_async(self._middleware_chain, thread_sensitive=True)
