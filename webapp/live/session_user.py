"""Finds the user of a WebSocket by its session."""

from typing import Any

from channels.db import database_sync_to_async
from channels.middleware import BaseMiddleware
from django.contrib.auth import HASH_SESSION_KEY, SESSION_KEY
from django.contrib.auth.models import AnonymousUser

from jobs.models import User
from jobs.queries.people.people import active_user
from jobs.queries.people.sessions import is_proof


class SessionUser(BaseMiddleware):  # type: ignore[misc] # channels has no types
    """Sets `scope["user"]`.

    The middleware of channels deletes sessions that were signed with the secret key before its rotation.
    """

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> Any:
        """Set the user of the scope's session."""
        user = await database_sync_to_async(user_of)(scope["session"])
        return await super().__call__({**scope, "user": user}, receive, send)


def user_of(session: Any) -> User | AnonymousUser:
    """Return the user whom a session belongs to, if its proof is of the present password."""
    user_id = session.get(SESSION_KEY)
    user = None if user_id is None else active_user(int(user_id))
    if user is None or not is_proof(session.get(HASH_SESSION_KEY, ""), user):
        return AnonymousUser()
    return user
