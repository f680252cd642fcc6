"""Helpers for asyncio tasks and threads."""

import asyncio
import concurrent.futures
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from webapp.ops.shared_results import settle


async def run_in_daemon_thread[T](function: Callable[[], T]) -> T:
    """Run a blocking function in a daemon thread, which does not delay the process's exit."""
    loop, future = asyncio.get_running_loop(), asyncio.Future[T]()

    def run() -> None:
        ended = concurrent.futures.Future[T]()
        settle(ended, function)
        # The thread may end after the event loop has closed, or after its task was cancelled.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(_copy, ended, future)

    threading.Thread(target=run, daemon=True).start()
    return await future


def _copy[T](ended: concurrent.futures.Future[T], future: asyncio.Future[T]) -> None:
    if future.done():
        return
    if (error := ended.exception()) is not None:
        future.set_exception(error)
    else:
        future.set_result(ended.result())


async def cancel(*tasks: asyncio.Task[Any]) -> None:
    """Cancel tasks and wait until they have ended."""
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
