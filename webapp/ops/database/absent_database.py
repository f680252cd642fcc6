"""Refuses commands for an installation that is not there, before they make files in a mistyped home."""

import os
from pathlib import Path
from urllib.parse import unquote, urlsplit

from jobs import program
from jobs.logs.start_errors import end_with
from webapp.ops.home import Home

COMMANDS = (
    *("adduser", "adopt-store", "audit", "backup", "backups", "collect", "move-database", "queue"),
    *("rotate-keys", "serving-token", "single-person", "token"),
)
"""Commands that use an installation. The others make one, run a part of it, or need none."""

WITHOUT_INSTALLATION = ("-h", "--help", "--verify")
"""Options with which a command needs no installation."""


def require_database(arguments: list[str]) -> None:
    """End the program if its command needs a database file that does not exist.

    Whether a database server has an installation is only known once it is asked.

    Args:
        arguments: the program's, without its name.
    """
    command = "".join(arguments[:1]).replace("_", "-")
    if command not in COMMANDS or set(arguments) & set(WITHOUT_INSTALLATION):
        return
    path = _database_file()
    if path is None or path.exists():
        return
    starts = f"`{program.command_line('up')}` or `{program.command_line('web --migrate')}`"
    end_with(
        f"There is no installation: the database {path} does not exist. If there is one elsewhere, correct "
        f"TRAINYARD_HOME, which is {Home.from_environment().root} now, or TRAINYARD_DATABASE_URL. A new "
        f"installation begins with {starts}."
    )


def _database_file() -> Path | None:
    """Return the file of an SQLite database; None for other databases."""
    url = os.environ.get("TRAINYARD_DATABASE_URL")
    if not url:
        return Home.from_environment().root / "trainyard.sqlite3"
    try:
        parts = urlsplit(url)
    except ValueError:
        # The settings name the error.
        return None
    return Path(unquote(parts.path)) if parts.scheme == "sqlite" else None
