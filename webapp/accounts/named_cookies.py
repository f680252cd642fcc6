"""Waits with pages until the cookies have their names."""

import asyncio
from typing import Any

from webapp.accounts import cookie_names
from webapp.http_errors import Unavailable
from webapp.limits.refusals import refuse

WITHOUT_COOKIES = ("/healthz", "/livez", "/readyz", "/metrics", "/static/")
RETRY_SECONDS = 5
TRY_AGAIN = 1013
"""The code with which a WebSocket is closed whose client may come back."""


class NamedCookies:
    """Passes connections to `application` once the cookies have their names."""

    def __init__(self, application: Any) -> None:
        self._application = application

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one connection."""
        is_ready = cookie_names.are_known() or scope["path"].startswith(WITHOUT_COOKIES)
        if is_ready or await asyncio.to_thread(cookie_names.complete):
            await self._application(scope, receive, send)
        elif scope["type"] == "http":
            sentence = "The database does not answer. Try again in a moment."
            await refuse(scope, send, Unavailable(sentence, retry_after=RETRY_SECONDS))
        else:
            await receive()
            await send({"type": "websocket.close", "code": TRY_AGAIN})
