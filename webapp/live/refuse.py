from typing import Any

NOT_FOUND = 4404


async def refuse(scope: Any, receive: Any, send: Any) -> None:  # noqa: ARG001 - ASGI's signature
    """Close a socket at an address where nothing is."""
    await receive()
    await send({"type": "websocket.close", "code": NOT_FOUND})
