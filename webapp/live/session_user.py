"""Finds the user of a WebSocket by its session."""

from typing import Any

from channels.auth import AuthMiddleware
from channels.db import database_sync_to_async
from django.contrib.auth import HASH_SESSION_KEY, SESSION_KEY
from django.contrib.auth.models import AnonymousUser

from jobs.models import User
from jobs.queries.people.people import active_user
from jobs.queries.people.sessions import is_proof


class SessionUser(AuthMiddleware):  # type: ignore[misc] # channels has no types
    """Sets `scope["user"]`.

    That of channels deletes sessions which were signed with the secret key before its rotation.
    """

    async def resolve_scope(self, scope: dict[str, Any]) -> None:
        """Set the user of the scope's session."""
        scope["user"]._wrapped = await database_sync_to_async(user_of)(scope["session"])


def user_of(session: Any) -> User | AnonymousUser:
    """Return the user whom a session belongs to, if its proof is of the present password."""
    user_id = session.get(SESSION_KEY)
    user = None if user_id is None else active_user(int(user_id))
    if user is None or not is_proof(session.get(HASH_SESSION_KEY, ""), user):
        return AnonymousUser()
    return user
