"""Describes which endpoints a request's token reaches."""

import time
from dataclasses import dataclass


@dataclass(frozen=True)
class Access:
    """The access that a known token gives.

    Attributes:
        endpoints: the endpoints that it reaches, by name; None if it is not for predictions.
        expires: when it ends, in seconds of the epoch; None: when it is revoked.
        warning: why it must be replaced; None if it need not.
        metrics: whether it may read the metrics of the server.
    """

    endpoints: frozenset[str] | None
    expires: float | None = None
    warning: str | None = None
    metrics: bool = False

    @property
    def is_expired(self) -> bool:
        return self.expires is not None and self.expires <= time.time()
