"""Logs errors at the edge of a loop or thread that must continue."""

from collections.abc import Iterator
from contextlib import contextmanager
from logging import Logger


@contextmanager
def log_errors(log: Logger, message: str, *arguments: object) -> Iterator[None]:
    """Log any error that the block raises, and continue after the block.

    Args:
        log: gets the message and the traceback.
        message: as `Logger.exception` takes it.
        arguments: for the message.
    """
    try:
        yield
    # The caller's loop or thread does optional work. A failure must not end the rest.
    except Exception:
        log.exception(message, *arguments)
