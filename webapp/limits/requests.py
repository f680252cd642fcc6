"""Bounds the requests that are answered at the same time: each has its own thread.

The last places are for people who are logged in and for tokens, and `/healthz` and `/livez` always have one.
"""

from collections import Counter

from jobs.client_addresses import client_network
from webapp.http_errors import Throttled, Unavailable
from webapp.limits.callers import find_caller
from webapp.limits.refusals import Application, Message, Receive, Scope, Send, refuse

MOST = 400
MOST_WITHOUT_LOGIN = 200
MOST_PER_ADDRESS = 128
ALWAYS_ANSWERED = frozenset({"/healthz", "/livez"})


class LimitRequests:
    """Passes requests to `application`, each while there is room for it."""

    def __init__(self, application: Application) -> None:
        self._application = application
        self._by_address: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one HTTP request (the ASGI entry point)."""
        if scope["path"] in ALWAYS_ANSWERED:
            await self._application(scope, receive, send)
            return
        # Behind a trusted proxy, the address that the proxy reports.
        address = client_network((scope.get("client") or ("",))[0])
        self._by_address[address] += 1
        is_counted = True

        def release() -> None:
            nonlocal is_counted
            if is_counted:
                is_counted = False
                self._by_address[address] -= 1
                if not self._by_address[address]:
                    del self._by_address[address]

        async def forward(message: Message) -> None:
            # An event stream stays open, and is counted where it is made.
            if message["type"] == "http.response.start" and _is_stream(message):
                release()
            await send(message)

        try:
            if (refusal := await self._refusal(scope, address)) is not None:
                await refuse(scope, send, refusal)
            else:
                await self._application(scope, receive, forward)
        finally:
            release()

    async def _refusal(self, scope: Scope, address: str) -> Throttled | Unavailable | None:
        """Return why a request, which is counted already, is not answered."""
        if self._by_address[address] > MOST_PER_ADDRESS:
            return Throttled("Too many requests of this address are being answered.", retry_after=1)
        total = self._by_address.total()
        is_full = total > MOST or (total > MOST_WITHOUT_LOGIN and await find_caller(scope["headers"]) is None)
        return (
            Unavailable("Too many requests are being answered. Try again in a moment.") if is_full else None
        )


def _is_stream(message: Message) -> bool:
    return any(
        name.lower() == b"content-type" and value.startswith(b"text/event-stream")
        for name, value in message["headers"]
    )
