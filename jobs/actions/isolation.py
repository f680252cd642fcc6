"""One row after the other, so that a broken one does not hold up the rest."""

import logging
from collections.abc import Callable, Iterable

from django.db import DatabaseError, DataError, IntegrityError, InterfaceError
from django.db.models import Model
from django.db.transaction import TransactionManagementError

from jobs.errors import StaleState

log = logging.getLogger(__name__)

OF_THE_ROW = (IntegrityError, DataError, TransactionManagementError)
"""What the database says of one row's work; all else it says is about itself."""


def each[M: Model](
    rows: Iterable[M],
    act: Callable[[M], object],
    *,
    otherwise: Callable[[M, Exception], object] | None = None,
) -> int:
    """Do something with every row; what goes wrong with one is logged. Returns how often `act` said true.

    Args:
        rows: what to go through. Each call of `act` is a transaction of its own, or several.
        act: may raise StaleState for a row that moved under our eyes; the next round sees how.
        otherwise: what to do with a row that `act` cannot cope with.

    Raises:
        DatabaseError: it is away, or older than this code; InterfaceError likewise. The caller waits.
    """
    done = 0
    for row in rows:
        try:
            done += bool(act(row))
        except StaleState as error:
            log.info("%s %s waits: %s", row._meta.verbose_name, row.pk, error)
        except Exception as error:  # whatever it is, the other rows come first
            if isinstance(error, DatabaseError | InterfaceError) and not isinstance(error, OF_THE_ROW):
                raise
            log.exception("%s %s cannot go on", row._meta.verbose_name, row.pk)
            if otherwise is not None:
                _cope(row, error, otherwise)
    return done


def _cope[M: Model](row: M, cause: Exception, otherwise: Callable[[M, Exception], object]) -> None:
    each([row], lambda broken: otherwise(broken, cause))
