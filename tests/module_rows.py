"""Creates database rows once for all tests of a module.

`module_rows` is a fixture of the scope "module"; fixtures of the same scope call it with the function that
makes their rows. It holds a transaction around those of the tests, so the writes of a test end with the test.
Tests must copy the returned objects, by `copy.deepcopy`. Files in the store are not removed, and nothing that
the function registers with `on_commit` is called.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

import pytest
from django.db import transaction
from pytest_django import DjangoDbBlocker


class ModuleRows(Protocol):
    """Calls a function that makes rows, and returns its result."""

    def __call__[T](self, make: Callable[[], T]) -> T: ...


@pytest.fixture(scope="module")
def module_rows(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[ModuleRows]:
    def made[T](make: Callable[[], T]) -> T:
        with django_db_blocker.unblock():
            return make()

    with django_db_blocker.unblock(), transaction.atomic():
        # Each test unblocks the database for itself.
        with django_db_blocker.block():
            yield made
        transaction.set_rollback(True)


def refuse_commits(items: list[pytest.Item]) -> None:
    """Check that no test that commits uses rows of its module: other connections would not see them.

    Raises:
        UsageError: one does.
    """
    for item in items:
        names = getattr(item, "fixturenames", ())
        if "module_rows" in names and _commits(item, names):
            raise pytest.UsageError(f"{item.nodeid} commits, so it cannot use the fixture module_rows")


def _commits(item: pytest.Item, fixtures: Sequence[str]) -> bool:
    marker = item.get_closest_marker("django_db")
    is_marked = marker is not None and bool(marker.kwargs.get("transaction"))
    return is_marked or "transactional_db" in fixtures or "live_server" in fixtures
