"""Counts prediction requests to models that exist."""

from workers.serving.metrics import Metrics
from workers.serving.releases.catalog import Catalog
from workers.serving.traffic import Traffic


class RequestCounter:
    """Counts requests for the metrics and for the dashboard."""

    def __init__(self, catalog: Catalog, metrics: Metrics, traffic: Traffic) -> None:
        self._catalog, self._metrics, self._traffic = catalog, metrics, traffic

    def count(self, model: str, version: int, api: str, status: int, seconds: float) -> None:
        """Count one request.

        Args:
            model: the name in the request.
            version: the version that was chosen to answer; 0 if none was.
            api: the operation.
            status: the response status.
            seconds: from its arrival to its response.
        """
        # Callers choose unknown names freely, and each would create a set of labels that stays in memory.
        if model in self._catalog.endpoints:
            self._metrics.request_done(model, api, status, seconds)
            self._traffic.tally(model, version).count_request(status, seconds)
