"""Reserves room for a request's upload in its project, until the request has been answered."""

from collections.abc import Callable
from typing import NamedTuple

from django.http import HttpRequest, HttpResponse

from jobs.actions.data import uploads
from jobs.models import Project

Handler = Callable[[HttpRequest], HttpResponse]

EARLY = "trainyard.upload"
"""The key of the ASGI scope with the reservation that was made before the body was read."""


class EarlyReservation(NamedTuple):
    """A reservation and its project, by their keys."""

    key: int
    project: int


def reserve(request: HttpRequest, project: Project, size: int) -> None:
    """Reserve room for a file that was received. An early reservation gets its exact size.

    Raises:
        QuotaReached: the project has no room for the file, or too many uploads in progress.
    """
    early: EarlyReservation | None = getattr(request, "scope", {}).get(EARLY)
    held = early.key if early is not None and early.project == project.pk else None
    key = uploads.reserve(project, size, held=held)
    request._upload_reservation = key  # type: ignore[attr-defined]


def release_upload(handler: Handler) -> Handler:
    """Middleware: end a request's reservation, once its rows are committed or it is refused."""

    def respond(request: HttpRequest) -> HttpResponse:
        try:
            return handler(request)
        finally:
            key: int | None = getattr(request, "_upload_reservation", None)
            if key is not None:
                uploads.release(key)

    return respond
