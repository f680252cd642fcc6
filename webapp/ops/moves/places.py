"""Opens the two databases of a move, and lets Django's models read one or the other."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from django.db import DEFAULT_DB_ALIAS, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.utils import load_backend


@contextmanager
def opened(database: Mapping[str, Any]) -> Iterator[BaseDatabaseWrapper]:
    """Open a connection of its own to the database with Django's settings `database`."""
    configured = connections.configure_settings({DEFAULT_DB_ALIAS: dict(database)})[DEFAULT_DB_ALIAS]
    wrapper: BaseDatabaseWrapper = load_backend(configured["ENGINE"]).DatabaseWrapper(
        configured, DEFAULT_DB_ALIAS
    )
    try:
        yield wrapper
    finally:
        wrapper.close()


@contextmanager
def as_default(wrapper: BaseDatabaseWrapper) -> Iterator[None]:
    """Let all models of this thread use another connection. A transaction must end within the block."""
    present = connections[DEFAULT_DB_ALIAS]
    connections[DEFAULT_DB_ALIAS] = wrapper
    try:
        yield
    finally:
        connections[DEFAULT_DB_ALIAS] = present
