"""Runs database calls from asyncio in dedicated threads, each with its own connection."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from django.db import InterfaceError, OperationalError, connection

from workers.supervise.attempt_repository import DatabaseUnavailable


class DatabaseThread:
    """One thread that runs database calls in order."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._thread = self._new_thread()

    async def call[T](self, function: Callable[[], T], *, timeout: float | None = None) -> T:
        """Run `function` in the thread.

        Args:
            function: makes the database queries.
            timeout: seconds after which the call is abandoned; it may still take effect later.

        Raises:
            DatabaseUnavailable: the database is unreachable or locked, or the call timed out.
        """
        running = asyncio.get_running_loop().run_in_executor(self._thread, _run, function)
        try:
            return await asyncio.wait_for(running, timeout)
        except TimeoutError:
            # A thread cannot be interrupted, so it is abandoned together with its call.
            self._thread.shutdown(wait=False)
            self._thread = self._new_thread()
            raise DatabaseUnavailable(f"no answer from the database within {timeout} s") from None

    def _new_thread(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(max_workers=1, thread_name_prefix=self._name)


def _run[T](function: Callable[[], T]) -> T:
    try:
        return function()
    except (OperationalError, InterfaceError) as error:
        # A connection that failed may stay broken. The next call opens a new one.
        connection.close()
        raise DatabaseUnavailable(str(error)) from error
