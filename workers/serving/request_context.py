"""The parts of the server that all requests need, whichever way they are answered."""

import typing
from collections.abc import Sequence
from dataclasses import dataclass

from workers.serving.access import Access
from workers.serving.asgi import Request
from workers.serving.bodies.codec import BodyCodec
from workers.serving.counting import RequestCounter
from workers.serving.protocols.protocol import Protocol
from workers.serving.protocols.table import PROTOCOLS
from workers.serving.releases.catalog import Catalog
from workers.serving.settings import Limits


class Authenticator(typing.Protocol):
    """Checks whether a request may be answered."""

    async def check(self, request: Request) -> Access:
        """Return the request's access. Raises a `ServingError` if it has none."""

    async def check_scrape(self, request: Request) -> None:
        """Check that the request may read metrics. Raises a `ServingError` if it may not."""

    async def reaches(self, request: Request, model: str) -> bool:
        """Return whether the request may ask a model."""

    def is_known(self, request: Request, model: str) -> bool:
        """Return whether it is known already that the request may ask a model, and has no warning."""


@dataclass(frozen=True)
class RequestContext:
    """Serves one catalog's models.

    Attributes:
        catalog: has the models.
        counter: counts requests for metrics and for the dashboard.
        limits: the server's.
        authenticator: checks callers; None if none needs a token.
        bodies: parses and encodes bodies.
        hosts: the host names that requests may have; None for any.
        protocols: those that are served.
    """

    catalog: Catalog
    counter: RequestCounter
    limits: Limits
    authenticator: Authenticator | None
    bodies: BodyCodec
    hosts: tuple[str, ...] | None = None
    protocols: Sequence[Protocol] = PROTOCOLS
