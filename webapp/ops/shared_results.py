"""Passes the end of a call to those that wait for it."""

from collections.abc import Callable
from concurrent.futures import Future


def settle[T](future: Future[T], function: Callable[[], T]) -> None:
    """Give a future on which others wait the result of a function, or its error."""
    try:
        result = function()
    # Also what ends a thread: without it the others would wait for ever.
    except BaseException as error:  # noqa: BLE001
        future.set_exception(error)
    else:
        future.set_result(result)
