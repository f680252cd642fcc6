"""Finds out who sends a request before its body is read. The view checks the caller again, and its rights."""

from dataclasses import dataclass

from asgiref.sync import ThreadSensitiveContext
from channels.db import database_sync_to_async
from django.contrib.sessions.middleware import SessionMiddleware
from django.http import HttpRequest, HttpResponse
from django.http.cookie import parse_cookie

from jobs import access
from jobs.access import Action
from jobs.actions.people import tokens
from jobs.models import User
from webapp.accounts.session_user import user_of_request


@dataclass(frozen=True)
class Caller:
    """A person who is logged in, or a valid token's owner."""

    user: User
    may_write: bool


async def find_caller(headers: list[tuple[bytes, bytes]]) -> Caller | None:
    """Return who sent a request with these headers; None without valid credentials."""
    named = {name: value.decode("latin-1") for name, value in headers}
    if b"authorization" not in named and b"cookie" not in named:
        return None
    # In a thread of its own: a slow database then delays no other request.
    async with ThreadSensitiveContext():
        caller: Caller | None = await database_sync_to_async(_find_caller)(named)
    return caller


def _find_caller(headers: dict[bytes, str]) -> Caller | None:
    scheme, _, secret = headers.get(b"authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        token = tokens.authenticate(secret.strip())
        return None if token is None else _caller(token.user, "write" in token.scopes)
    user = _user_of_session(headers.get(b"cookie", ""))
    return None if user is None else _caller(user, may_write=True)


def _caller(user: User, may_write: bool) -> Caller:
    return Caller(user, may_write and access.projects_of(user, Action.WRITE).exists())


def _user_of_session(cookie: str) -> User | None:
    request = HttpRequest()
    request.COOKIES = parse_cookie(cookie)
    SessionMiddleware(lambda _: HttpResponse()).process_request(request)
    user = user_of_request(request)
    return user if isinstance(user, User) else None
