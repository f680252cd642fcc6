"""Tries the database once, as a process of its own: `python -m workers.node.database_probe`.

It reads the parameters from standard input, and ends with 0 if it can begin to write. It
imports no Django.
"""

import json
import sqlite3
import sys
from typing import Any

from workers.system.parent_death import die_with_parent


def try_database(parameters: dict[str, Any], *, timeout: float) -> None:
    """Connect, and begin a transaction for writing.

    Args:
        parameters: `engine`, and how its driver connects.
        timeout: the seconds that a connection, or a lock, may take.

    Raises:
        Exception: the driver's, if the database does not answer.
    """
    if parameters["engine"] == "sqlite":
        connection = sqlite3.connect(parameters["name"], timeout=timeout, isolation_level=None)
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("ROLLBACK")
        connection.close()
        return
    import psycopg

    with psycopg.connect(**parameters["connection"], connect_timeout=max(2, round(timeout))) as server:
        server.execute("SELECT txid_current()")


def main() -> None:
    """Read the parameters and try."""
    # A database that is silent would be waited for for ever.
    die_with_parent(int(sys.argv[1]))
    request = json.load(sys.stdin)
    try_database(request["parameters"], timeout=request["timeout"])


if __name__ == "__main__":
    main()
