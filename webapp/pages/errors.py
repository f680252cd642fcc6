"""The error pages; Django calls these views by name."""

from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.template.loader import render_to_string

from jobs.errors import Forbidden, NotFound, TrainyardError
from jobs.models import User
from webapp.http_errors import Malformed
from webapp.pages.shortcuts import BareErrorPage, error_response, render_page
from webapp.template_context import template_variables


def show_error(request: HttpRequest, error: TrainyardError) -> HttpResponse:
    """Return an error's page."""
    if isinstance(request.user, User):
        return error_response(request, error)
    return render_page(request, "error_bare.html", BareErrorPage(error, error.status), status=error.status)


def bad_request(request: HttpRequest, exception: Any) -> HttpResponse:  # noqa: ARG001
    """Respond to a malformed request, which has no user yet, and whose form cannot be read.

    Django's own view reads the form again, for its CSRF token, and ends with an unexpected error.
    """
    error = Malformed("The request is malformed.")
    page = render_to_string("error_bare.html", template_variables(BareErrorPage(error, error.status)))
    return HttpResponse(page, status=error.status)


def not_found(request: HttpRequest, exception: Http404) -> HttpResponse:  # noqa: ARG001
    """Respond to an unknown address."""
    return show_error(request, NotFound("There is no such page."))


def forbidden(request: HttpRequest, exception: Any) -> HttpResponse:  # noqa: ARG001
    """Respond to a request that Django rejects."""
    return show_error(request, Forbidden("You do not have permission to do this."))


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:  # noqa: ARG001
    """Respond to a form whose CSRF token is missing or expired."""
    text = "This form has expired or was sent from another site. Go back, reload the page and send it again."
    return show_error(request, Forbidden(text, code="csrf_failed"))


def server_error(request: HttpRequest) -> HttpResponse:  # noqa: ARG001 - the request may be the cause
    """Respond to an unhandled exception, without database access and without context."""
    # Not `render`: it runs the context processors, whose queries may be the cause.
    return HttpResponse(render_to_string("500.html"), status=500)
