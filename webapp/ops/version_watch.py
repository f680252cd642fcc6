"""Ends a web server whose database is not its own: of another version, or of another installation.

An upgrade may have forgotten the server, and it must not write to a database of another version. One that
started while the database was away compares itself with it later.
"""

import logging
import threading
from collections.abc import Callable

from django.db import DatabaseError, InterfaceError, connections

from jobs.actions import own_installation
from jobs.queries import compatibility

log = logging.getLogger(__name__)

COMPARE_SECONDS = 15.0


class VersionWatch(threading.Thread):
    """Compares this program with the database now and then.

    Args:
        end: lets the server end; it is called once, if there is a problem.
        begin: called once, when the database is known to be this installation's.
        pause: the seconds between two comparisons.

    Attributes:
        problem: why this process ends; None while it may use the database.
    """

    def __init__(
        self,
        end: Callable[[], object],
        pause: float = COMPARE_SECONDS,
        begin: Callable[[], object] = lambda: None,
    ) -> None:
        super().__init__(name="version-watch", daemon=True)
        self._end, self._pause, self._begin = end, pause, begin
        self._stop_event = threading.Event()
        self._is_own = False
        self.problem: str | None = None

    def compare(self) -> None:
        """Compare the versions, and once the installations. A database that is away changes nothing."""
        try:
            self.problem = compatibility.problem()
            if self.problem is None and not self._is_own:
                self.problem = own_installation.problem(signs=True)
                if self.problem is None:
                    self._begin()
                    self._is_own = True
        except (DatabaseError, InterfaceError) as error:
            log.debug("the versions could not be compared: %s", error)
        finally:
            connections.close_all()

    def run(self) -> None:
        """Compare until there is a problem."""
        while not self._stop_event.wait(self._pause):
            self.compare()
            if self.problem is not None:
                self._end()
                return

    def stop(self) -> None:
        """End the thread at its next pause."""
        self._stop_event.set()
