"""WebSocket routes: for pages (session, same origin) and for scripts (Bearer token)."""

from typing import Any

from django.urls import path

from webapp.live.consumer import LiveConsumer, TokenConsumer

session_routes: list[Any] = [path("ws/v1", LiveConsumer.as_asgi())]
token_routes: list[Any] = [path("ws/v1/token", TokenConsumer.as_asgi())]
