"""Refusals of a request, each with the HTTP status that TensorFlow Serving's code map gives it."""


class ServingError(Exception):
    """A request that is answered with an error; the message is for the caller."""

    status = 500

    def __init__(self, message: str, *, retry_after: int | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class BadRequest(ServingError):
    """INVALID_ARGUMENT: the request cannot be understood or does not fit the signature."""

    status = 400


class Unauthenticated(ServingError):
    """UNAUTHENTICATED: no token, or one nobody knows."""

    status = 401


class Forbidden(ServingError):
    """PERMISSION_DENIED: the token lacks the scope, or the dashboard owns this."""

    status = 403


class NotFound(ServingError):
    """NOT_FOUND: no such model or version, or none that is approved."""

    status = 404


class BodyTooLarge(ServingError):
    """More bytes or rows than one request may have."""

    status = 413


class Saturated(ServingError):
    """RESOURCE_EXHAUSTED: the queue is full; come back after `retry_after` seconds."""

    status = 429


class ClientGone(ServingError):
    """CANCELLED: the client closed its connection; nobody reads this."""

    status = 499


class Unavailable(ServingError):
    """UNAVAILABLE: approved, but not ready to answer right now."""

    status = 503


class DeadlineExceeded(ServingError):
    """DEADLINE_EXCEEDED: the caller's or our own time limit ran out."""

    status = 504
