"""Middleware: leads people who must have a second factor and have none to its page, before any other page."""

from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from jobs import access
from jobs.models import User

Handler = Callable[[HttpRequest], HttpResponse]
# The account itself, parts that need no login, and the API, which refuses by itself.
OPEN = ("/accounts/", "/account/", "/login/", "/api/", "/static/", "/healthz", "/readyz")
FORBIDDEN = 403


def second_factor_required(handler: Handler) -> Handler:
    """Redirect to the page that sets up the second factor."""

    def respond(request: HttpRequest) -> HttpResponse:
        # Read first: without the requirement, requests such as /healthz need no session.
        if not settings.TRAINYARD_REQUIRE_SECOND_FACTOR or request.path_info.startswith(OPEN):
            return handler(request)
        user = request.user
        if not isinstance(user, User) or not user.is_active or not access.lacks_second_factor(user):
            return handler(request)
        page = reverse("mfa_activate_totp", query={"required": 1})
        if request.headers.get("HX-Request") == "true":
            # htmx would insert the page of the second factor into the present one.
            return HttpResponse(status=FORBIDDEN, headers={"HX-Redirect": page})
        return redirect(page)

    return respond
