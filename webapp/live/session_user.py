"""Finds the user of a WebSocket by its session."""

from typing import Any

from channels.db import database_sync_to_async
from channels.middleware import BaseMiddleware

from webapp.accounts.session_user import user_of


class SessionUser(BaseMiddleware):  # type: ignore[misc] # channels has no types
    """Sets `scope["user"]`.

    The middleware of channels deletes sessions that were signed with the secret key before its rotation.
    """

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> Any:
        """Set the user of the scope's session."""
        user = await database_sync_to_async(user_of)(scope["session"])
        return await super().__call__({**scope, "user": user}, receive, send)
