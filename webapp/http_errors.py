"""The refusals of requests that no action has seen, each with its HTTP status."""

from jobs.errors import TrainyardError


class Unauthenticated(TrainyardError):
    """No credentials, or credentials that are not good."""

    code, status = "unauthenticated", 401


class Malformed(TrainyardError):
    """The bytes sent are not what they claim to be."""

    code, status = "malformed", 400


class TooLarge(TrainyardError):
    """More bytes, fields or files than this server takes."""

    code, status = "too_large", 413


class UnsupportedMediaType(TrainyardError):
    """The body is of another type than this route reads."""

    code, status = "unsupported_media_type", 415


class StaleEtag(TrainyardError):
    """The thing changed since the caller read it."""

    code, status = "stale_etag", 412


class Throttled(TrainyardError):
    """Too many requests; `retry_after` seconds from now there is room again."""

    code, status = "throttled", 429

    def __init__(self, message: str, *, retry_after: int) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class Unavailable(TrainyardError):
    """A part that this needs is away for a moment."""

    code, status = "unavailable", 503
