"""Runs database calls from asyncio in dedicated threads, each with its own connection."""

import asyncio
import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from django.db import InterfaceError, OperationalError, connection

from workers.node.hanging_calls import HangingCall
from workers.supervise.attempt_repository import DatabaseUnavailable

log = logging.getLogger(__name__)

CALL_TIMEOUT_SECONDS = 30.0
"""Above SQLite's busy timeout: a call that takes longer hangs on a connection that was lost silently."""
MAX_ABANDONED = 24
"""With more calls that were abandoned and still wait, no further thread is started in this process."""

_abandoned: set["_Lane"] = set()


class _Lane:
    """One thread with its connection, which is closed at the thread's end."""

    def __init__(self, name: str) -> None:
        self.executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix=name)
        self.running = HangingCall()

    def run[T](self, function: Callable[[], T]) -> T:
        """Call a function in this thread."""
        with self.running:
            try:
                return function()
            except (OperationalError, InterfaceError) as error:
                # A connection that failed may stay broken. The next call opens a new one.
                connection.close()
                raise DatabaseUnavailable(str(error)) from error

    def close(self) -> None:
        """Let the thread close its connection and end, after the calls that it has."""
        # Nothing else does: the connection would stay open, and occupied, for the life of the process.
        self.executor.submit(self._close_connection)
        self.executor.shutdown(wait=False)

    def abandon(self) -> None:
        """Interrupt the present call, and let the thread end."""
        _abandoned.add(self)
        self.close()
        threading.Thread(target=self.running.interrupt, name="interrupt", daemon=True).start()

    def _close_connection(self) -> None:
        try:
            connection.close()
        finally:
            _abandoned.discard(self)


class DatabaseThread:
    """One thread that runs database calls in order."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lane: _Lane | None = None

    async def call[T](self, function: Callable[[], T], *, timeout: float | None = CALL_TIMEOUT_SECONDS) -> T:
        """Run `function` in the thread.

        Args:
            function: makes the database queries.
            timeout: seconds after which the call is abandoned; it may still take effect later.

        Raises:
            DatabaseUnavailable: the database is unreachable or locked, or the call timed out.
        """
        if self._lane is None:
            if len(_abandoned) >= MAX_ABANDONED:
                raise DatabaseUnavailable(f"{len(_abandoned)} earlier calls still wait for the database")
            self._lane = _Lane(self._name)
        lane = self._lane
        running = asyncio.get_running_loop().run_in_executor(lane.executor, lane.run, function)
        try:
            return await asyncio.wait_for(running, timeout)
        except TimeoutError:
            # Another call may have abandoned the thread before.
            if self._lane is lane:
                self._lane = None
                lane.abandon()
            raise DatabaseUnavailable(f"no answer from the database within {timeout:g} s") from None

    def close(self) -> None:
        """Let the thread end after the calls that it has. A later call starts another one."""
        if self._lane is not None:
            self._lane.close()
            self._lane = None


def abandoned_calls() -> int:
    """Return how many abandoned calls of this process still wait for the database."""
    return len(_abandoned)
