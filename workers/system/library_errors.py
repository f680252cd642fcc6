"""Raises the errors of libraries that read bytes from outside as errors of this program."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from workers.system.machine_errors import MACHINE_ERRORS


@contextmanager
def explaining_damage(explain: Callable[[Exception], Exception], *passed: type[Exception]) -> Iterator[None]:
    """Raise every error of the block as another one. Only the code that reads the bytes belongs in it.

    Args:
        explain: returns the error that is raised instead.
        passed: errors that are raised as they are, like those of the machine and those about memory.
    """
    try:
        yield
    # Damaged bytes make libraries raise nearly every class of exception, and none of them documents which.
    except Exception as error:
        of_machine = isinstance(error, OSError) and error.errno in MACHINE_ERRORS
        if of_machine or isinstance(error, (MemoryError, *passed)):
            raise
        raise explain(error) from error
