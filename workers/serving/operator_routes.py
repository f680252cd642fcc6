"""Answers probes and scrapes: `/livez`, `/readyz` and `/metrics`.

Probes ask by the address of a machine or container, so their host is not checked: the answers have nothing
that a page of another site could use. `/metrics` names models, and needs a token where predictions do.
"""

from collections.abc import Awaitable, Callable

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.exposition import generate_latest

from workers.model_process.errors import NotFound, Unavailable
from workers.serving.asgi import Request
from workers.serving.metrics import Metrics
from workers.serving.releases.catalog import Catalog
from workers.serving.response import TEXT, Response, json_response

CheckScrape = Callable[[Request], Awaitable[None]]


class OperatorRoutes:
    """The answers for operators.

    Args:
        catalog: knows whether all endpoints are loaded.
        metrics: the server's.
        check_scrape: raises an error unless a request may read metrics; None if every request may.
    """

    def __init__(self, catalog: Catalog, metrics: Metrics, check_scrape: CheckScrape | None) -> None:
        self._catalog, self._metrics, self._check_scrape = catalog, metrics, check_scrape
        self._process = CollectorRegistry()
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=self._process)
        self._paths = {"/livez": self._live, "/readyz": self._ready, "/metrics": self._scrape}

    def owns(self, path: str) -> bool:
        """Return whether a path is one of these."""
        return path in self._paths

    def is_open(self, path: str) -> bool:
        """Return whether a path is answered whatever the host of the request."""
        return path in ("/livez", "/readyz")

    async def answer(self, request: Request) -> Response:
        """Answer a request for one of the paths.

        Raises:
            ServingError: the method is another one, or the token is missing or refused.
        """
        if request.method not in ("GET", "HEAD"):
            raise NotFound("Not found")
        return await self._paths[request.path](request)

    async def _live(self, _: Request) -> Response:
        return json_response({"status": "ok"})

    async def _ready(self, _: Request) -> Response:
        try:
            return json_response({"status": "ready", **self._catalog.check_ready()})
        except Unavailable as error:
            return json_response({"status": "not ready", "missing": ["models"], "reason": str(error)}, 503)

    async def _scrape(self, request: Request) -> Response:
        if self._check_scrape is not None:
            await self._check_scrape(request)
        return Response(self._metrics.text() + generate_latest(self._process), headers=TEXT)
