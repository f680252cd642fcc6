"""Names the cookies after the installation, which the database knows.

Cookies do not distinguish ports, so two installations on one host need different names. Web servers of one
installation, with whatever homes, need the same names, so the home's path is not in them. The secret key is
no better: a restored copy has it too.
"""

import threading

from django.conf import settings
from django.db import DatabaseError, InterfaceError, connections

from jobs.actions import own_installation

LENGTH = 8
_naming = threading.Lock()


def are_known() -> bool:
    """Return whether the cookies have their names."""
    return bool(settings.TRAINYARD_COOKIE_SUFFIX)


def named(cookie: str) -> str:
    """Return the name of a cookie that is not one of Django's."""
    return f"{cookie}{settings.TRAINYARD_COOKIE_SUFFIX}"


def complete() -> bool:
    """Name the cookies, once for this process. Return whether they have their names.

    A home that was used before knows its installation without the database. In a new one the names stay
    unknown while the database is away: no one can log in meanwhile.
    """
    with _naming:
        if not are_known() and (identity := _identity()):
            suffix = f"-{identity[:LENGTH]}"
            settings.SESSION_COOKIE_NAME += suffix
            settings.CSRF_COOKIE_NAME += suffix
            # Last: it shows other threads that both have their names.
            settings.TRAINYARD_COOKIE_SUFFIX = suffix
        return are_known()


def _identity() -> str:
    try:
        return own_installation.ensured_row().identity
    except (DatabaseError, InterfaceError):
        return own_installation.recorded_identity()
    finally:
        connections.close_all()
