"""Addresses of the sockets: those for pages (session, same origin) and those for scripts (Bearer token)."""

from typing import Any

session_routes: list[Any] = []
token_routes: list[Any] = []
