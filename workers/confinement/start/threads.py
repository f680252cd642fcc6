"""Does slow steps in threads, so that nothing is left if a step's caller is cancelled."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Executor
from contextlib import AsyncExitStack, asynccontextmanager, suppress


async def call_in_thread[T](
    function: Callable[[], T], discard: Callable[[T], object], executor: Executor | None = None
) -> T:
    """Call a function in a thread.

    A thread cannot be stopped: if the caller is cancelled, the error is raised only after the thread has
    finished, since it may use the caller's files until then.

    Args:
        function: the step.
        discard: is called with the result, in a thread, if the caller was cancelled meanwhile.
        executor: has the thread; by default that for `asyncio.to_thread`.
    """
    calling = asyncio.get_running_loop().run_in_executor(executor, function)
    try:
        return await asyncio.shield(calling)
    except asyncio.CancelledError:
        await asyncio.shield(_discard_result(calling, discard))
        raise


async def _discard_result[T](calling: "asyncio.Future[T]", discard: Callable[[T], object]) -> None:
    await asyncio.wait({calling})
    if not calling.cancelled() and calling.exception() is None:
        await asyncio.to_thread(discard, calling.result())


@asynccontextmanager
async def undone_on_error(undo: Callable[[], object]) -> AsyncIterator[None]:
    """Call `undo` in a thread if the block fails or is cancelled."""
    async with AsyncExitStack() as stack:
        stack.push_async_callback(lambda: asyncio.shield(asyncio.to_thread(undo)))
        yield
        stack.pop_all()


def follow_in_thread(
    name: str, wait: Callable[[], object], status: Callable[[], int]
) -> "asyncio.Future[int]":
    """Wait for an end in its own thread, and return its status as a future.

    Args:
        name: the thread's.
        wait: returns at the end.
        status: is called in the event loop after that, and returns the result.
    """
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[int] = loop.create_future()

    def report() -> None:
        if not ended.done():
            ended.set_result(status())

    def run() -> None:
        try:
            wait()
        finally:
            # The program may have ended meanwhile.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(report)

    threading.Thread(target=run, name=name, daemon=True).start()
    return ended
