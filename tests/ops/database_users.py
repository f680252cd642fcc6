"""A process that uses a database as a part does."""

import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.ops.conftest import ROOT

PROGRAM = """from pathlib import Path
import os, sys
from jobs import database_use
database_use.share({database!r}, Path({home!r}))
if {forks!r}:
    os.fork()
print(os.getpid(), flush=True)
sys.stdin.read()
"""


@contextmanager
def using(
    database: Mapping[str, Any], home: Path, *, forks: bool = False
) -> "Iterator[subprocess.Popen[str]]":
    """Start a process that shares the database, and end it afterwards.

    Args:
        database: Django's.
        home: that of the process.
        forks: it has a child of its own, which survives when it is killed.
    """
    names = {key: str(database[key]) for key in ("ENGINE", "NAME")}
    text = PROGRAM.format(database=names, home=str(home), forks=forks)
    with subprocess.Popen(
        [sys.executable, "-c", text], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        for _ in range(1 + forks):
            assert process.stdout.readline()
        yield process
