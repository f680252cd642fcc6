"""Finds the user of a browser's session, whose key stays the same when the secret key is rotated."""

from functools import cache
from typing import Any

from asgiref.sync import sync_to_async
from django.contrib.auth import HASH_SESSION_KEY, SESSION_KEY, middleware
from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject

from jobs.models import User
from jobs.queries.people.people import active_user
from jobs.queries.people.sessions import is_proof


class AuthenticationMiddleware(middleware.AuthenticationMiddleware):
    """Django's middleware, but it gives sessions of a former secret key no new key.

    With the first of parallel requests, a new key would log out the others, which have the old cookie.
    """

    def process_request(self, request: HttpRequest) -> None:
        """Set the user, who is read at the first use."""
        super().process_request(request)
        find = cache(lambda: user_of_request(request))
        request.user = SimpleLazyObject(find)  # type: ignore[assignment]
        request.auser = sync_to_async(find)


def user_of_request(request: HttpRequest) -> User | AnonymousUser:
    """Return the user of a request's session. Its proof is renewed if it is of a former secret key."""
    session: Any = request.session
    user = user_of(session)
    if isinstance(user, User):
        proof = user.get_session_auth_hash()
        if session[HASH_SESSION_KEY] != proof:
            session.replace(HASH_SESSION_KEY, proof)
    elif SESSION_KEY in session:
        session.flush()
    return user


def user_of(session: Any) -> User | AnonymousUser:
    """Return the user whom a session belongs to, if its proof is of the present password."""
    user_id = session.get(SESSION_KEY)
    user = None if user_id is None else active_user(int(user_id))
    if user is None or not is_proof(session.get(HASH_SESSION_KEY, ""), user):
        return AnonymousUser()
    return user
