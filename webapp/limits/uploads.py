"""Counts an upload against its project's quotas while its body is read, as soon as the project is known.

The view counts it again with its exact size. Here it may be refused before anything is stored.
"""

import asyncio
import contextlib
import logging
import re
from collections.abc import Callable
from urllib.parse import parse_qs

from asgiref.sync import ThreadSensitiveContext
from channels.db import database_sync_to_async
from django.db import Error as DatabaseFailed

from jobs import access
from jobs.access import Action
from jobs.actions.data import uploads
from jobs.errors import QuotaReached, TrainyardError
from jobs.models import Project, User
from webapp.limits.callers import Caller
from webapp.limits.refusals import Scope
from webapp.limits.routes import ANONYMOUS_BYTES, UPLOADS
from webapp.reservations import EARLY, EarlyReservation

log = logging.getLogger(__name__)

FORM_BYTES = ANONYMOUS_BYTES
"""The fields of a form beside its file have fewer bytes."""
HEAD_BYTES = ANONYMOUS_BYTES
"""The project of a form is looked for in this many bytes: clients send fields before files."""
RENEW_SECONDS = uploads.LEASE_SECONDS / 3

_MODEL = re.compile(r"(?:/api/v1)?/models/([^/]+)/(?:versions|upload)")
_DATASET = re.compile(r"/api/v1/datasets/([^/]+)/versions")
_FIELD = re.compile(rb'name="?project"?\r\n(?:[^\r\n]+\r\n)*\r\n([a-z0-9_-]{1,63})\r\n')


class UploadInProgress:
    """One request's upload. Use it as a context manager around the reading.

    Attributes:
        received: the number of received bytes.
    """

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._caller: Caller | None = None
        self._announced: int | None = None
        self._head = b""
        self._is_decided = not UPLOADS.fullmatch(scope["path"])
        self._held: EarlyReservation | None = None
        self._renewing: asyncio.Task[None] | None = None
        self.received = 0

    async def begin(self, caller: Caller, announced: int | None) -> None:
        """Reserve room if the address names the project.

        Args:
            caller: who sends it.
            announced: the body's bytes; None if they are not known.

        Raises:
            QuotaReached: the project has no room, or too many uploads in progress.
        """
        self._caller, self._announced = caller, announced
        await self._reserve(caller, form=None)

    async def add(self, part: bytes) -> None:
        """Note a body part, and reserve room once the form names the project.

        Raises:
            QuotaReached: the project has no room, or too many uploads in progress.
        """
        self.received += len(part)
        if self._is_decided:
            return
        self._head += part[: HEAD_BYTES - len(self._head)]
        if self._caller is None:
            return
        field = _FIELD.search(self._head)
        if field is not None or len(self._head) >= HEAD_BYTES:
            self._is_decided = True
            self._head = b""
            await self._reserve(self._caller, form=field[1].decode() if field else "")

    async def _reserve(self, caller: Caller, *, form: str | None) -> None:
        try:
            await _in_thread(lambda: self._hold(caller.user, form))
        except QuotaReached:
            # It may repeat a request that had an effect. Only the view knows, once it has the whole body.
            if any(name == b"idempotency-key" for name, _ in self._scope["headers"]):
                return
            raise
        except DatabaseFailed as error:
            log.warning("an upload is counted once it is received: %s", error)
            return
        if self._held is not None:
            self._is_decided = True
            self._scope[EARLY] = self._held
            self._renewing = asyncio.create_task(self._renew(self._held))

    def _hold(self, user: User, form: str | None) -> None:
        """Reserve room. The thread notes it: a request can be cancelled before its thread has answered."""
        size = max(0, (self._announced or self.received) - FORM_BYTES)
        if (project := _project(user, self._scope, form)) is not None:
            self._held = EarlyReservation(uploads.reserve(project, size), project.pk)

    async def _renew(self, held: EarlyReservation) -> None:
        while True:
            await asyncio.sleep(RENEW_SECONDS)
            # Without a renewal the upload is forgotten for a moment, and counted again by the view.
            with contextlib.suppress(DatabaseFailed):
                await _in_thread(lambda: uploads.renew(held.key, self._size_now()))

    def _size_now(self) -> int | None:
        """Return the bytes that were received if the client has announced none."""
        return max(0, self.received - FORM_BYTES) if self._announced is None else None

    async def end(self) -> None:
        """End the reservation, which the view may have ended already."""
        if self._renewing is not None:
            self._renewing.cancel()
        if (held := self._held) is None:
            return
        try:
            await _in_thread(lambda: uploads.release(held.key))
        except DatabaseFailed as error:
            log.warning("an upload counts until its lease ends: %s", error)


def _project(user: User, scope: Scope, form: str | None) -> Project | None:
    """Return an upload's project if it is known and `user` may write in it; the view refuses others.

    Args:
        user: who sends it.
        scope: the request.
        form: the project in its form; "" if the form has none, None if the form is not known yet.
    """
    query = parse_qs(scope.get("query_string", b"").decode("latin-1"))
    named = form or query.get("project", [""])[0]
    with contextlib.suppress(TrainyardError):
        if (model := _MODEL.fullmatch(scope["path"])) is not None:
            return access.get_model(user, model[1], Action.WRITE).project
        if named:
            return access.get_project(user, named, Action.WRITE)
        if form is not None and (dataset := _DATASET.fullmatch(scope["path"])) is not None:
            return access.get_dataset(user, dataset[1], None, Action.WRITE).project
    return None


async def _in_thread[T](call: Callable[[], T]) -> T:
    async with ThreadSensitiveContext():
        result: T = await database_sync_to_async(call)()
    return result
