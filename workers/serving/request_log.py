"""Writes a line for a share of all requests."""

import hashlib
import logging

import structlog

from jobs.logs.sampling import Sampler
from workers.serving.asgi import Request

log = structlog.stdlib.get_logger("trainyard.serving.requests")


class RequestLog:
    """The access log. A line takes as long as a tenth of a small prediction, so there is none by default.

    Args:
        share: of the requests, from 0 to 1.
    """

    def __init__(self, share: float) -> None:
        self._sampler = Sampler(share)
        self.is_on = share > 0 and logging.getLogger("trainyard.serving").isEnabledFor(logging.INFO)

    def write(self, request: Request, status: int, seconds: float) -> None:
        """Write the line of an answered request, if it is one of the chosen ones."""
        if not self.is_on or not self._sampler.chooses():
            return
        fields: dict[str, object] = {} if (caller := _caller(request)) is None else {"caller": caller}
        log.info(
            "request",
            method=request.method,
            path=request.path,
            status=status,
            ms=round(seconds * 1000, 2),
            address=request.address,
            **fields,
        )


def _caller(request: Request) -> str | None:
    """Return the beginning of the digest of a token: the server knows no users, and a token is secret."""
    scheme, _, token = (request.header(b"authorization") or "").partition(" ")
    if scheme.lower() != "bearer":
        return None
    return hashlib.sha256(token.strip().encode()).hexdigest()[:12]
