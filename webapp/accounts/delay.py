"""Answers with status 429 where a form refuses a password or a code during a delay."""

from collections.abc import Callable

from allauth.core import context
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse

from jobs.errors import TooManyAttempts

Handler = Callable[[HttpRequest], HttpResponse]
SECONDS = "login_delay_seconds"
"""Attribute of a request: the seconds until the next attempt is allowed."""


def delay_error(error: TooManyAttempts) -> ValidationError:
    """Return the error that the form shows, and keep the delay for the response's status."""
    if context.request is not None:
        setattr(context.request, SECONDS, error.retry_after)
    return ValidationError(error.message, code=error.code)


def status_of_delay(handler: Handler) -> Handler:
    """Set the status and Retry-After of an answer to an attempt that came during a delay.

    allauth shows its forms with status 200, whatever their errors are.
    """

    def respond(request: HttpRequest) -> HttpResponse:
        response = handler(request)
        seconds = getattr(request, SECONDS, None)
        if seconds is not None:
            response.status_code = TooManyAttempts.status
            response["Retry-After"] = str(seconds)
        return response

    return respond
