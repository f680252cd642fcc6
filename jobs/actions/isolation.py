"""Processes rows one at a time, so that an error in one row does not affect the others."""

import logging
from collections.abc import Callable, Iterable

from django.db import DatabaseError, DataError, IntegrityError, InterfaceError
from django.db.models import Model
from django.db.transaction import TransactionManagementError

from jobs.errors import StaleState

log = logging.getLogger(__name__)

ROW_ERRORS = (IntegrityError, DataError, TransactionManagementError)
"""Database errors that one row can cause; all others concern the database itself."""


def for_each[M: Model](
    rows: Iterable[M],
    action: Callable[[M], object],
    *,
    on_error: Callable[[M, Exception], object] | None = None,
) -> int:
    """Call `action` for every row. Log errors and continue with the next row.

    Args:
        rows: the rows to process.
        action: called once per row. It opens its own transactions. It may raise StaleState for a row that
            another process has changed; the next round reads the row again.
        on_error: called with the row and the exception if `action` raises another error.

    Returns:
        How many calls of `action` returned a true value.

    Raises:
        DatabaseError, InterfaceError: the database is unavailable, or its schema is older than this code.
    """
    done = 0
    for row in rows:
        try:
            done += bool(action(row))
        except StaleState as error:
            log.info("%s %s waits: %s", row._meta.verbose_name, row.pk, error)
        # Any bug in one row must not keep the others from being processed.
        except Exception as error:
            # The other rows would fail too; the caller waits until the database is available again.
            if isinstance(error, DatabaseError | InterfaceError) and not isinstance(error, ROW_ERRORS):
                raise
            log.exception("%s %s could not be processed", row._meta.verbose_name, row.pk)
            if on_error is not None:
                _call_isolated(on_error, row, error)
    return done


def _call_isolated[M: Model](on_error: Callable[[M, Exception], object], row: M, cause: Exception) -> None:
    """Call `on_error`; its errors are handled like `action`'s, but not reported to it again."""
    for_each([row], lambda failed: on_error(failed, cause))
