"""Asks whether the configured store may be changed. The database knows; `jobs.apps` connects the question."""

from collections.abc import Callable

type Permission = Callable[[], object]
"""Raises if the store belongs to another installation, so that nothing may be changed in it."""


def always_permitted() -> None:
    """Permit every change, as for a store that one process has for itself."""


_permission: list[Permission] = [always_permitted]


def set_permission(permission: Permission) -> None:
    """Set the function that raises if the store must not be changed."""
    _permission[:] = [permission]


def require_permission() -> None:
    """Raise `NotOwned` if the store belongs to another installation."""
    _permission[0]()
