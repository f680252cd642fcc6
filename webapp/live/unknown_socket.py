"""Closes WebSockets at unknown paths with an error code."""

from typing import Any

NOT_FOUND = 4404


async def close_unknown_socket(scope: Any, receive: Any, send: Any) -> None:  # noqa: ARG001 - signature of ASGI
    """Close a WebSocket whose path is unknown (an ASGI application)."""
    await receive()
    await send({"type": "websocket.close", "code": NOT_FOUND})
