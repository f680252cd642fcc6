"""Runs a module in a process of its own, on a copy of the test's SQLite database."""

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

from django.db import connection

ROOT = Path(__file__).resolve().parents[3]


def run_on_copy(module: str, *arguments: str, folder: Path, **environment: str) -> dict[str, Any]:
    """Run a module, and return the JSON in the last line that it prints.

    Args:
        module: its name.
        arguments: of its command line.
        folder: gets the copy, and is the process's home.
        environment: further variables.
    """
    copied = folder / "copy.sqlite3"
    database = sqlite3.connect(connection.settings_dict["NAME"], timeout=20)
    with closing(database), closing(sqlite3.connect(copied)) as copy:
        database.backup(copy)
    variables = os.environ | {
        "TRAINYARD_HOME": str(folder),
        "TRAINYARD_DATABASE_URL": f"sqlite:///{copied}",
        "DJANGO_SETTINGS_MODULE": "webapp.settings.main",
    }
    command = [sys.executable, "-m", module, *arguments]
    done = subprocess.run(
        command, cwd=ROOT, env=variables | environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    report: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return report
