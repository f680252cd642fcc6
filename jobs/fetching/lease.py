"""Keeps a fetch's lease while its file is stored, which takes minutes for a large file."""

import logging
from collections.abc import Iterable, Iterator
from threading import Event, Thread
from types import TracebackType

from django.db import DatabaseError, InterfaceError, connections

from jobs.actions.data import fetch_attempts
from jobs.actions.data.fetch_attempts import LEASE_SECONDS, Claimed, NotHeld

log = logging.getLogger(__name__)

RENEW_SECONDS = LEASE_SECONDS / 3


class Lease:
    """Renews the lease from a thread, after the last block until the end of the `with` block.

    While blocks arrive, their receiver renews it: a source that hangs then ends its process.
    """

    def __init__(self, claimed: Claimed) -> None:
        self._claimed, self._stop = claimed, Event()
        self._thread = Thread(target=self._run, name="lease of a fetch", daemon=True)

    def __enter__(self) -> "Lease":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join()

    def after(self, blocks: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the blocks, and renew the lease from then on."""
        yield from blocks
        self._thread.start()

    def _run(self) -> None:
        try:
            while not self._stop.wait(RENEW_SECONDS):
                self._renew()
        except NotHeld:
            # The launcher kills the process, or the end of the fetch finds the same.
            log.info("fetch %s belongs to this process no more", self._claimed.fetch)
        finally:
            connections.close_all()

    def _renew(self) -> None:
        try:
            fetch_attempts.extend(self._claimed)
        except (DatabaseError, InterfaceError):
            # The next attempt comes before the lease ends, with a new connection.
            log.warning("fetch %s: the database is unavailable", self._claimed.fetch)
            connections.close_all()
