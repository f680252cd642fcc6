"""Refuses bodies that are too large while they are read, before anything is stored.

Django reads the whole body into a temporary file before it looks at the address. So this ASGI middleware
counts the bytes on their way to Django.
"""

from jobs.errors import QuotaReached, TrainyardError
from webapp.http_errors import TooLarge, Unauthenticated
from webapp.limits.callers import Caller, find_caller
from webapp.limits.refusals import Application, Message, Receive, Scope, Send, refuse
from webapp.limits.routes import BodyLimits, limits_of
from webapp.limits.uploads import UploadInProgress


class LimitBodies:
    """Passes requests to `application`, with at most as many bytes as route and caller may send."""

    def __init__(self, application: Application) -> None:
        self._application = application

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one HTTP request (the ASGI entry point)."""
        body = _Body(scope, receive)
        try:
            await body.check_announced()
        except TrainyardError as error:
            await body.refuse(send, error)
            return
        has_started = False

        async def forward(message: Message) -> None:
            nonlocal has_started
            # Django answers nothing to a client that disconnected, which `receive` reported to it.
            has_started = True
            await send(message)

        try:
            await self._application(scope, body.receive, forward)
        finally:
            await body.upload.end()
        if body.refusal is not None and not has_started:
            await body.refuse(send, body.refusal)


class _Body:
    """One request's body.

    Attributes:
        limit: the bytes that are allowed so far.
        refusal: why the rest is not read.
        upload: the upload that it may be.
    """

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self._scope, self._receive = scope, receive
        self._limits = limits_of(scope["method"], scope["path"])
        self._caller: Caller | None = None
        self._is_caller_known = False
        self._received = 0
        self._announced: int | None = None
        self.limit = self._limits.anyone
        self.refusal: TrainyardError | None = None
        self.upload = UploadInProgress(scope)

    async def check_announced(self) -> None:
        """Check the length that the client announced.

        Raises:
            TooLarge: it is above the limit.
            Unauthenticated: it is above the limit for callers without credentials, in the API.
            QuotaReached: it is an upload that its project has no room for.
        """
        for name, value in self._scope["headers"]:
            if name == b"content-length" and value.isdigit():
                self._announced = int(value)
                await self._allow(self._announced)

    async def receive(self) -> Message:
        """Return the body's next part; a disconnection once the body is too large."""
        message = await self._receive()
        if message["type"] != "http.request":
            return message
        self._received += len(message.get("body", b""))
        try:
            await self._allow(self._received)
            await self.upload.add(message.get("body", b""))
        except TrainyardError as error:
            self.refusal = error
            return {"type": "http.disconnect"}
        return message

    async def _allow(self, size: int) -> None:
        if size <= self.limit:
            return
        raisable = self._limits.anyone < max(self._limits.member, self._limits.writer)
        if raisable and not self._is_caller_known:
            self._is_caller_known = True
            self._caller = await find_caller(self._scope["headers"])
            self.limit = _limit_for(self._caller, self._limits)
            if size <= self.limit:
                if self._caller is not None and self._caller.may_write:
                    await self.upload.begin(self._caller, self._announced)
                return
        # The API answers 401 to everyone without credentials, whatever they send.
        if raisable and self._caller is None and self._scope["path"].startswith("/api/"):
            raise Unauthenticated(
                "Send Authorization: Bearer ty_… "
                f"Without valid credentials a body has at most {self.limit:,} bytes."
            )
        raise TooLarge(f"This request is larger than the limit of {self.limit:,} bytes.")

    async def refuse(self, send: Send, error: TrainyardError) -> None:
        """Answer with an error, and the limit of bodies if this is one that is too large."""
        fields = {} if isinstance(error, QuotaReached) else {"limit": self.limit}
        await refuse(self._scope, send, error, **fields)


def _limit_for(caller: Caller | None, limits: BodyLimits) -> int:
    if caller is None:
        return limits.anyone
    return limits.writer if caller.may_write else limits.member
