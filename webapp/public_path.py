"""Answers below the path of the public address, such as `/trainyard`.

Proxies pass this path on or remove it, and monitors and prediction servers on the same network ask without
it. So requests are taken with and without the path. All layers above Django see paths without it. Django gets
it as ASGI's `root_path`, and puts it before each address that it makes; `jobs.public_path` does so for the
others.
"""

from typing import Any

from django.conf import settings

type Application = Any
"""An ASGI application."""


class WithoutPublicPath:
    """Passes requests and sockets to `application` without the path of the public address."""

    def __init__(self, application: Application) -> None:
        self._application = application

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one connection (the ASGI entry point)."""
        prefix = settings.FORCE_SCRIPT_NAME
        if prefix and f"{scope['path']}/".startswith(f"{prefix}/"):
            scope = {**scope, "path": scope["path"].removeprefix(prefix) or "/"}
        await self._application(scope, receive, send)


class WithPublicPath:
    """Passes requests to Django with the path of the public address, as ASGI wants them."""

    def __init__(self, application: Application) -> None:
        self._application = application

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one HTTP request (the ASGI entry point)."""
        if prefix := settings.FORCE_SCRIPT_NAME:
            scope = {**scope, "path": f"{prefix}{scope['path']}", "root_path": prefix}
        await self._application(scope, receive, send)
