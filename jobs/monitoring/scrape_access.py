"""Decides who may read metrics: tokens with the scope `metrics`, which administrators make."""

import logging
import threading
import time
from collections import OrderedDict

from django.db import DatabaseError, InterfaceError, connections

from jobs.actions.people import tokens
from jobs.queries.people.tokens import reads_metrics

log = logging.getLogger(__name__)

KNOWN_SECONDS = 10.0
"""A revoked token is accepted for this long at most, while the database answers."""
GRACE_SECONDS = 3600.0
"""While it does not, known tokens are accepted for this long: metrics are needed in an outage most of all."""
MAX_KNOWN = 100

ALLOWED, UNAUTHENTICATED, FORBIDDEN, UNAVAILABLE = 200, 401, 403, 503
REFUSALS = {
    UNAUTHENTICATED: "Send a token with the scope metrics: Authorization: Bearer ty_…",
    FORBIDDEN: "The token lacks the scope metrics, or its owner is no administrator of the installation.",
    UNAVAILABLE: "The token cannot be checked now: the database does not answer.",
}


class ScrapeAccess:
    """Checks tokens of monitors. It remembers those that were valid, by their digests."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: OrderedDict[str, float] = OrderedDict()

    def status(self, authorization: str) -> int:
        """Return 200 if a request with this header may read metrics, else the status of its refusal."""
        scheme, _, secret = authorization.partition(" ")
        secret = secret.strip()
        if scheme.lower() != "bearer" or not secret.startswith(tokens.PREFIX):
            return UNAUTHENTICATED
        digest, now = tokens.digest_of(secret), time.monotonic()
        with self._lock:
            age = now - self._known.get(digest, float("-inf"))
        if age < KNOWN_SECONDS:
            return ALLOWED
        try:
            status = _status_of(secret)
        except (DatabaseError, InterfaceError):
            connections.close_all()
            return ALLOWED if age < GRACE_SECONDS else UNAVAILABLE
        with self._lock:
            self._known.pop(digest, None)
            if status == ALLOWED:
                self._known[digest] = now
                while len(self._known) > MAX_KNOWN:
                    self._known.popitem(last=False)
        return status


def _status_of(secret: str) -> int:
    token = tokens.authenticate(secret)
    if token is None:
        return UNAUTHENTICATED
    return ALLOWED if reads_metrics(token) else FORBIDDEN
