"""Request errors, with the HTTP statuses that TensorFlow Serving maps their codes to."""

import re

TOO_LARGE = "too_large"
"""The kind of a failed load of a model that is larger than the one device of its process."""
LACKS_MEMORY = "memory"
"""The kind of a load or batch that needs more memory than is free; a later one may fit."""
# The escape sequences with which libraries colour their messages, and other characters without a glyph.
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|[^\S ]|[\x00-\x1f\x7f-\x9f]")


def plain_text(text: str, *, limit: int) -> str:
    """Return a message as one line with at most `limit` characters, without control codes."""
    return " ".join(_CONTROL.sub(" ", text).split())[:limit]


class ServingError(Exception):
    """An error response. The message is shown to the caller."""

    status = 500

    def __init__(self, message: str, *, retry_after: int | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class BadRequest(ServingError):
    """INVALID_ARGUMENT: the request is malformed or does not fit the signature."""

    status = 400


class Unauthenticated(ServingError):
    """UNAUTHENTICATED: the token is missing or unknown."""

    status = 401


class Forbidden(ServingError):
    """PERMISSION_DENIED: the token lacks the scope, or only the dashboard may do this."""

    status = 403


class NotFound(ServingError):
    """NOT_FOUND: no such model or version, or none that is approved."""

    status = 404


class BodyTooLarge(ServingError):
    """The request exceeds the byte limit or the row limit."""

    status = 413


class UnsupportedEncoding(ServingError):
    """The request's Content-Encoding is unknown."""

    status = 415


class Saturated(ServingError):
    """RESOURCE_EXHAUSTED: the queue is full; retry after `retry_after` seconds."""

    status = 429


class NoRoom(Saturated):
    """RESOURCE_EXHAUSTED: other requests' bodies take too much memory. The body is not read."""


class ClientGone(ServingError):
    """CANCELLED: the client closed its connection and does not read the response."""

    status = 499


class Unavailable(ServingError):
    """UNAVAILABLE: the version is approved, but not ready."""

    status = 503


class DeadlineExceeded(ServingError):
    """DEADLINE_EXCEEDED: the caller's or the server's time limit has passed."""

    status = 504
