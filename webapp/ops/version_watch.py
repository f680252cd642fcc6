"""Ends a web server that an upgrade forgot: it must not write to a database of another version."""

import logging
import os
import signal
import threading

from django.db import DatabaseError, InterfaceError, connections

from jobs.queries import compatibility

log = logging.getLogger(__name__)

COMPARE_SECONDS = 15.0


class VersionWatch(threading.Thread):
    """Compares this program with the database now and then.

    Attributes:
        problem: why this process ends; None while it may use the database.
    """

    def __init__(self, pause: float = COMPARE_SECONDS) -> None:
        super().__init__(name="version-watch", daemon=True)
        self._pause = pause
        self._stop_event = threading.Event()
        self.problem: str | None = None

    def run(self) -> None:
        """Compare until there is a problem, and then end the process as a signal does."""
        while not self._stop_event.wait(self._pause):
            try:
                self.problem = compatibility.problem()
            except (DatabaseError, InterfaceError) as error:
                log.debug("the versions could not be compared: %s", error)
            finally:
                connections.close_all()
            if self.problem is not None:
                log.error("%s", self.problem)
                os.kill(os.getpid(), signal.SIGTERM)
                return

    def stop(self) -> None:
        """End the thread at its next pause."""
        self._stop_event.set()
