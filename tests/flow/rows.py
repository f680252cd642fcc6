"""Reads rows of a running installation, so that tests poll REST only after a change."""

import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.ops.conftest import wait_for

MAX_INTERVAL = 3.0
"""Seconds. REST is polled at least this often, because its answer may depend on other rows."""


def read(home: Path, query: str, *values: Any) -> list[tuple[Any, ...]]:
    """Return a query's rows from an installation's database, running or not."""
    with closing(_open(home)) as database:
        return database.execute(query, values).fetchall()


def until[T](home: Path, query: str, values: list[Any], ask: Callable[[], T | None], **wait: Any) -> T:
    """Return the first true answer of `ask`, which is asked when the row that `query` finds has changed.

    A question by REST takes a hundred times the CPU time of a look at the row.
    """
    before: Any = None
    asked = -MAX_INTERVAL

    def look() -> T | None:
        nonlocal before, asked
        row = database.execute(query, values).fetchone()
        if row == before and time.monotonic() - asked < MAX_INTERVAL:
            return None
        before, asked = row, time.monotonic()
        return ask()

    with closing(_open(home)) as database:
        return wait_for(look, **wait)


def _open(home: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{home.as_uri()}/trainyard.sqlite3?mode=ro", uri=True)
