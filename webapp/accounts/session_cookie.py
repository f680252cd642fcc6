"""Middleware for browser sessions, which never takes a newer login's cookie away."""

from django.contrib.sessions import middleware
from django.http import HttpRequest, HttpResponse
from django.utils.cache import patch_vary_headers


class SessionMiddleware(middleware.SessionMiddleware):
    """Django's middleware, but only a logout deletes the cookie, not a session that is not found.

    A page may still wait for a response when its person logs in again in another tab, which ends the session
    of that request. Its late response would delete the cookie of the new session.
    """

    def process_response(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        """Save a changed session, and set or delete its cookie."""
        session = request.session
        if session.is_empty() and not session.modified:
            if session.accessed:
                patch_vary_headers(response, ("Cookie",))
            return response
        return super().process_response(request, response)
