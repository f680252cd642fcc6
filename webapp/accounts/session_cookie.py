"""Sets and deletes the cookie of a session."""

from django.conf import settings
from django.contrib.sessions.middleware import SessionMiddleware
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.cache import patch_vary_headers


class SessionCookie(SessionMiddleware):
    """Django's middleware, but the cookie of a session that had ended before the request stays.

    Otherwise the late answer to a request of another tab deletes the cookie of a login that is newer than
    that request, and the user is logged out at once.
    """

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        """Delete the cookie only in the response to the request that ends the session."""
        session = getattr(request, "session", None)
        has_cookie = settings.SESSION_COOKIE_NAME in request.COOKIES
        if session is None or not has_cookie or not session.is_empty() or session.modified:
            return super().process_response(request, response)
        patch_vary_headers(response, ("Cookie",))
        return response
