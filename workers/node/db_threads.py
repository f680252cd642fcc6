"""Database calls from asyncio: each lane is one thread with one connection, its calls in order."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from django.db import InterfaceError, OperationalError, connection

from workers.supervise.ledger import LedgerAway


class Lane:
    """Runs calls one after another. A call that takes too long is left behind with its thread."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._thread = self._new_thread()

    async def call[T](self, function: Callable[[], T], *, patience: float | None = None) -> T:
        """Run `function` in the lane's thread.

        Args:
            function: touches the database.
            patience: seconds after which the call is given up; it may still take effect later.

        Raises:
            LedgerAway: the database is away or locked, or patience ran out.
        """
        running = asyncio.get_running_loop().run_in_executor(self._thread, _run, function)
        try:
            return await asyncio.wait_for(running, patience)
        except TimeoutError:
            self._thread.shutdown(wait=False)
            self._thread = self._new_thread()
            raise LedgerAway(f"no answer from the database within {patience} s") from None

    def _new_thread(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(max_workers=1, thread_name_prefix=self._name)


def _run[T](function: Callable[[], T]) -> T:
    try:
        return function()
    except (OperationalError, InterfaceError) as error:
        connection.close()  # the next call opens a new one
        raise LedgerAway(str(error)) from error
