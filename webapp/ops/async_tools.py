"""Helpers for asyncio tasks and threads."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any


async def run_in_daemon_thread[T](function: Callable[[], T]) -> T:
    """Run a blocking function in a daemon thread, which does not delay the process's exit."""
    loop, future = asyncio.get_running_loop(), asyncio.Future[T]()

    def run() -> None:
        try:
            result = function()
        except Exception as error:  # noqa: BLE001 - raised in the awaiting task
            _settle(loop, future, partial(future.set_exception, error))
        else:
            _settle(loop, future, partial(future.set_result, result))

    threading.Thread(target=run, daemon=True).start()
    return await future


def _settle[T](
    loop: asyncio.AbstractEventLoop, future: asyncio.Future[T], settle: Callable[[], None]
) -> None:
    # The thread may end after the event loop has closed, or after its task was cancelled.
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(lambda: None if future.done() else settle())


async def cancel(*tasks: asyncio.Task[Any]) -> None:
    """Cancel tasks and wait until they have ended."""
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
