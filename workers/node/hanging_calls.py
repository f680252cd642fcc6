"""Interrupts a database call of another thread that gets no answer."""

import contextlib
import os
import socket
import threading
from types import TracebackType
from typing import Any, Self

from django.db import DEFAULT_DB_ALIAS, connections

CANCEL_SECONDS = 2.0
"""The time for asking the server to cancel the statement. It may be as silent as for the statement itself."""
REPEAT_SECONDS = 1.0


class HangingCall:
    """The database call that its thread makes inside a `with` block."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._connection: Any = None
        """Django's connection of the calling thread; None outside the block."""
        self._ended = threading.Event()

    def __enter__(self) -> Self:
        with self._lock:
            self._connection = connections[DEFAULT_DB_ALIAS]
        self._ended.clear()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._connection = None
        self._ended.set()

    def interrupt(self) -> None:
        """End the call with an error, from another thread, and return when it has ended.

        First the server is asked to cancel the statement, which may wait for a lock there. Then the socket is
        shut down, so that the waiting thread notices the end of its connection at once. SQLite is only
        waited for: its calls end by themselves, with its own timeout.
        """
        while not self._ended.is_set():
            if (driver := self._driver()) is not None:
                with contextlib.suppress(Exception):  # the server may not answer, or the call has just ended
                    driver.cancel_safe(timeout=CANCEL_SECONDS)
                self._shut_down(driver)
            # Again: the call may have been connecting, and then waits for its first answer.
            self._ended.wait(REPEAT_SECONDS)

    def _driver(self) -> Any:
        """Return the call's connection to PostgreSQL; None without one."""
        with self._lock:
            driver = None if self._connection is None else self._connection.connection
        return driver if hasattr(driver, "pgconn") else None

    def _shut_down(self, driver: Any) -> None:
        with self._lock:
            # After its end, the thread may use the connection for its next call.
            if self._connection is not None and self._connection.connection is driver:
                _shut_down(driver.pgconn)


def _shut_down(pgconn: Any) -> None:
    """Shut down a connection's socket. Its descriptor stays open: it belongs to the waiting thread."""
    with contextlib.suppress(Exception):  # the connection has just ended by itself
        number = pgconn.socket
        duplicate = socket.socket(fileno=os.dup(number))
        with duplicate:
            # If it is another one by now, the number may have been that of any other file.
            if pgconn.socket == number:
                duplicate.shutdown(socket.SHUT_RDWR)
