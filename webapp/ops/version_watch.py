"""Ends a web server whose database is not its own: of another version, or of another installation.

An upgrade may have forgotten the server, and it must not write to a database of another version. One that
started while the database was away compares itself with it later.
"""

import logging
import threading
import time
from collections.abc import Callable

from django.db import DatabaseError, InterfaceError, connections

from jobs.actions import own_installation
from jobs.queries import compatibility

log = logging.getLogger(__name__)

COMPARE_SECONDS = 15.0
SILENT_SECONDS = 60.0
"""The time after a message in which the same error is not logged again."""


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
        self._silent_until = 0.0
        self.problem: str | None = None

    def compare(self) -> None:
        """Compare the versions, and once the installations. An outage of database or home changes nothing."""
        try:
            self.problem = compatibility.problem()
            if self.problem is None and not self._is_own:
                self.problem = own_installation.problem(signs=True)
                if self.problem is None:
                    self._begin()
                    self._is_own = True
            elif self.problem is None:
                own_installation.follow_key()
        except (DatabaseError, InterfaceError) as error:
            log.debug("the versions could not be compared: %s", error)
        # The home's files: its disk may be away for a while, or a file have been damaged.
        except (OSError, ValueError) as error:
            if time.monotonic() >= self._silent_until:
                self._silent_until = time.monotonic() + SILENT_SECONDS
                log.warning("the program and the home could not be compared with the database: %s", error)
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
