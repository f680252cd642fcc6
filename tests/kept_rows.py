"""Rows with which all tests of a module begin: made once, in a transaction around those of the tests."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from django.db import transaction
from pytest_django import DjangoDbBlocker


@contextmanager
def kept[T](blocker: DjangoDbBlocker, make: Callable[[], T]) -> Iterator[T]:
    """Make rows, give what `make` returns, and remove the rows at the end of the block.

    For fixtures of the scope "module", in modules whose tests all use them and do not commit. The writes of
    a test end with its own transaction; the returned objects it must copy, by `copy.deepcopy`.
    """
    with blocker.unblock(), transaction.atomic():
        made = make()
        # Each test unblocks the database for itself.
        with blocker.block():
            yield made
        transaction.set_rollback(True)
