"""Lets the requests of a web server share connections to PostgreSQL."""

from django.db import DEFAULT_DB_ALIAS, connections

POOL = {
    "min_size": 1,
    "max_size": 12,
    # A request waits so long for a connection.
    "timeout": 10.0,
    # The pool doubles its pauses between two attempts to connect. After this time it gives up, and the next
    # request begins with short ones: otherwise an outage would last twice as long for it as for the database.
    "reconnect_timeout": 5.0,
}


def use_pool() -> None:
    """Share connections from now on. Call it before the first query of this process.

    Other parts keep one connection for each of their threads, which they replace themselves: a pool would
    gain nothing there, and lose a place for each thread that ends without giving its connection back.
    """
    settings = connections.settings[DEFAULT_DB_ALIAS]
    if settings["ENGINE"] == "django.db.backends.postgresql":
        settings["OPTIONS"]["pool"] = dict(POOL)
        # A connection may have died while it was unused, such as by a restart of the database.
        settings["CONN_HEALTH_CHECKS"] = True
