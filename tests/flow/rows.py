"""Looks at rows of a yard that runs: while a test waits, REST is asked only once they have changed."""

import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.ops.conftest import wait_for

LONGEST = 3.0
"""REST is asked at least this often, in seconds: what it says may depend on other rows too."""


def until[T](home: Path, query: str, values: list[Any], ask: Callable[[], T | None], **wait: Any) -> T:
    """Return the first true answer of `ask`, which is asked when the row that `query` finds has changed.

    A question by REST takes a hundred times the CPU time of a look at the row.
    """
    before: Any = None
    asked = -LONGEST

    def look() -> T | None:
        nonlocal before, asked
        row = database.execute(query, values).fetchone()
        if row == before and time.monotonic() - asked < LONGEST:
            return None
        before, asked = row, time.monotonic()
        return ask()

    with closing(sqlite3.connect(f"{home.as_uri()}/trainyard.sqlite3?mode=ro", uri=True)) as database:
        return wait_for(look, **wait)
