"""Small helpers round asyncio tasks and threads."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any


async def in_daemon[T](function: Callable[[], T]) -> T:
    """Await a blocking function in a thread that nobody waits for at the end, unlike `to_thread`'s."""
    loop, future = asyncio.get_running_loop(), asyncio.Future[T]()

    def run() -> None:
        try:
            result = function()
        except Exception as error:  # noqa: BLE001 - handed to whoever awaits
            _settle(loop, future, partial(future.set_exception, error))
        else:
            _settle(loop, future, partial(future.set_result, result))

    threading.Thread(target=run, daemon=True).start()
    return await future


def _settle[T](
    loop: asyncio.AbstractEventLoop, future: asyncio.Future[T], settle: Callable[[], None]
) -> None:
    with suppress(RuntimeError):  # the loop is closed: nobody awaits any more
        loop.call_soon_threadsafe(lambda: None if future.done() else settle())


async def cancel(*tasks: asyncio.Task[Any]) -> None:
    """Cancel tasks and wait for their end, whatever it is."""
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
