"""The probes and metrics of a scheduler or worker, at the address of `--status-address`."""

import logging
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from django.db import connections

from jobs.monitoring.exposition import CONTENT_TYPE, Exposition
from jobs.monitoring.scrape_access import ALLOWED, REFUSALS, ScrapeAccess
from transport.status import (
    StatusListener,
    StatusRequest,
    StatusResponse,
    is_loopback,
    json_response,
    parse_address,
)

log = logging.getLogger(__name__)

VARIABLE = "TRAINYARD_STATUS_ADDRESS"
OPTION_HELP = (
    "address, HOST:PORT, that answers /livez, /readyz and /metrics; off by default. On other than loopback "
    f"addresses /metrics needs a token with the scope metrics [{VARIABLE}]"
)
PART_NAMES = ("database", "broker", "scheduler", "worker", "version")
"""The names that `?without=` may have, on every part."""


class BadStatusAddress(Exception):
    """The address for probes and metrics is not valid, or cannot be bound."""


@dataclass(frozen=True)
class Checks:
    """The checks of one part.

    Attributes:
        hanging: returns why its loop does not turn; None if it does.
        missing: returns the names of missing parts; empty if it can do its work.
    """

    hanging: Callable[[], str | None]
    missing: Callable[[], Sequence[str]]


def start_listener(
    address: str | None, checks: Checks, exposition: Callable[[], Exposition]
) -> StatusListener | None:
    """Answer probes and scrapes; None without an address.

    Args:
        address: `HOST:PORT`; None: that of the environment, if it has one.
        checks: the part's.
        exposition: makes the part's metrics, if there is an address.

    Raises:
        BadStatusAddress: the address is not valid, or in use.
    """
    text = address if address is not None else os.environ.get(VARIABLE, "")
    if not text:
        return None
    try:
        host, port = parse_address(text)
        listener = StatusListener(
            host, port, routes(checks, exposition(), ScrapeAccess(), needs_token=not is_loopback(host))
        )
    except (OSError, ValueError) as error:
        raise BadStatusAddress(f"--status-address (or {VARIABLE}), {text!r}: {error}") from error
    listener.start()
    log.info("probes and metrics are at %s, port %d", host, listener.port)
    return listener


def routes(
    checks: Checks, exposition: Exposition, access: ScrapeAccess, *, needs_token: bool
) -> dict[str, Callable[[StatusRequest], StatusResponse]]:
    """Return the answers by path."""

    def livez(_: StatusRequest) -> StatusResponse:
        reason = checks.hanging()
        if reason is not None:
            return json_response(503, status="not live", reason=reason)
        return json_response(200, status="ok")

    def readyz(request: StatusRequest) -> StatusResponse:
        left_out = request.query.get("without", [])
        if unknown := unknown_parts(left_out):
            return json_response(422, detail=f"without: {unknown!r} is none of {', '.join(PART_NAMES)}")
        reason = checks.hanging()
        missing = ["loop"] if reason else [name for name in checks.missing() if name not in left_out]
        if missing:
            return json_response(503, status="not ready", missing=missing)
        return json_response(200, status="ready")

    def metrics(request: StatusRequest) -> StatusResponse:
        try:
            if needs_token:
                status = access.status(request.headers.get("authorization", ""))
                if status != ALLOWED:
                    return json_response(status, detail=REFUSALS[status])
            elif not is_loopback(request.host):
                # A page of another site whose name leads to this machine.
                return json_response(403, detail="Ask by a loopback address, such as 127.0.0.1.")
            return StatusResponse(200, exposition.text(), CONTENT_TYPE)
        finally:
            # This thread ends with its connection; nothing else would close that of the database.
            connections.close_all()

    return {"/livez": livez, "/readyz": readyz, "/metrics": metrics}


def unknown_parts(names: Iterable[str]) -> str | None:
    """Return the first value of `?without=` that names no part."""
    return next((name[:100] for name in names if name not in PART_NAMES), None)
