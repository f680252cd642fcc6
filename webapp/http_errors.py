"""Errors of HTTP requests, raised before an action is called; each with its status."""

from jobs.errors import TrainyardError


class Unauthenticated(TrainyardError):
    """The credentials are missing or invalid."""

    code, status = "unauthenticated", 401


class Malformed(TrainyardError):
    """The body cannot be parsed."""

    code, status = "malformed", 400


class TooLarge(TrainyardError):
    """The request has more bytes, fields or files than allowed."""

    code, status = "too_large", 413


class UnsupportedMediaType(TrainyardError):
    """The route does not accept the body's content type."""

    code, status = "unsupported_media_type", 415


class StaleEtag(TrainyardError):
    """The object changed since the client read it."""

    code, status = "stale_etag", 412


class Throttled(TrainyardError):
    """Too many requests; the client may retry after `retry_after` seconds."""

    code, status = "throttled", 429

    def __init__(self, message: str, *, retry_after: int) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class Unavailable(TrainyardError):
    """A required part is unavailable; the client may retry after `retry_after` seconds if they are known."""

    code, status = "unavailable", 503

    def __init__(self, message: str, *, retry_after: int | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after
