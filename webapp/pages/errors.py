"""Error pages that Django asks for by name."""

from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render

from jobs.errors import Forbidden, NotFound, TrainyardError
from jobs.models import User
from webapp.pages.shortcuts import refusal


def _show(request: HttpRequest, error: TrainyardError) -> HttpResponse:
    if isinstance(request.user, User):
        return refusal(request, error)
    return render(request, "error_bare.html", {"error": error, "status": error.status}, status=error.status)


def not_found(request: HttpRequest, exception: Http404) -> HttpResponse:  # noqa: ARG001
    """Answer an address that no page has."""
    return _show(request, NotFound("There is no such page."))


def forbidden(request: HttpRequest, exception: Any) -> HttpResponse:  # noqa: ARG001
    """Answer what Django itself refuses."""
    return _show(request, Forbidden("You may not do this."))


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:  # noqa: ARG001
    """Answer a form whose token is missing or stale."""
    text = "This form is too old or came from elsewhere: go back, reload the page and send it again."
    return _show(request, Forbidden(text, code="csrf_failed"))


def server_error(request: HttpRequest) -> HttpResponse:  # noqa: ARG001 - the request may be what broke
    """Answer when we broke, without the database and without context."""
    from django.template.loader import render_to_string

    return HttpResponse(render_to_string("500.html"), status=500)
