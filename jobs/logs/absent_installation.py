"""Commands where no installation is: they name the place where they looked, and make no files there.

The settings are read first, so that a wrong one is named rather than its effect.
"""

import os
from pathlib import Path
from urllib.parse import unquote, urlsplit

from jobs import database_use, program

BEGINNING = frozenset({"up", "demo", "restore", "migrate", "broker"})
"""Commands that begin an installation, as `web --migrate` does."""

INDEPENDENT = frozenset(
    {
        *("", "version", "help", "serve", "check", "makemigrations", "squashmigrations", "optimizemigration"),
        *("makemessages", "compilemessages", "diffsettings", "findstatic", "startapp", "startproject"),
        *("export-openapi-schema", "sendtestemail", "test", "testserver"),
    }
)
"""Commands that use no installation. A prediction server has files from the dashboard's machine instead."""

ON_OTHER_MACHINES = frozenset({"worker", "chief"})
"""Parts that begin the home of their machine, if the database is on a server. They need no secret key."""

WITHOUT_KEY = ON_OTHER_MACHINES | {"queue", "version"}
"""Commands that use an installation without its secret key."""

HELP = frozenset({"-h", "--help"})
"""The options with which a command only describes itself."""


def command_of(arguments: list[str]) -> str:
    """Return the name of the command, as it is shown, in the program's arguments."""
    return "".join(arguments[:1]).replace("_", "-")


def keep_absent(arguments: list[str]) -> None:
    """Let the settings make no folder and no key, if the command would not find an installation.

    Args:
        arguments: the program's, without its name.
    """
    if not _may_make_files(arguments):
        os.environ[program.WITHOUT_FILES_VARIABLE] = "1"


def _may_make_files(arguments: list[str]) -> bool:
    command = command_of(arguments)
    if set(arguments) & HELP:
        return False
    if command in BEGINNING or (command == "web" and "--migrate" in arguments):
        return True
    if (file := _database_file()) is not None:
        return file.exists()
    return command in ON_OTHER_MACHINES or not _is_without_key()


def uses_installation(arguments: list[str]) -> bool:
    """Return whether a command needs an installation that exists."""
    command = command_of(arguments)
    if set(arguments) & HELP or (command == "backup" and "--verify" in arguments):
        return False
    begins = command in BEGINNING or (command == "web" and "--migrate" in arguments)
    return not (begins or command in INDEPENDENT)


def problem(command: str) -> str | None:
    """Return why there is no installation for a command that needs one, in sentences; None if there may be.

    Whether the database of a server has an installation is only known once it is asked.
    """
    file = _database_file()
    if file is None:
        return _without_key() if _is_without_key() and command not in WITHOUT_KEY else None
    if file.exists():
        return None
    return database_use.replacement_of(file) or (
        f"There is no installation: the database {file} does not exist. If there is one elsewhere, correct "
        f"TRAINYARD_HOME, which is {_home()} now, or TRAINYARD_DATABASE_URL. A new installation begins with "
        f"{_starts()}."
    )


def _is_without_key() -> bool:
    return not (_home().exists() or _key_file().exists())


def _without_key() -> str:
    return (
        f"There is no installation here: the home does not exist, nor the secret key {_key_file()}. Correct "
        f"TRAINYARD_HOME, which is {_home()} now, or copy secret.key from the home of the first web server. "
        f"A new installation begins with {_starts()}."
    )


def _starts() -> str:
    return f"`{program.command_line('up')}` or `{program.command_line('web --migrate')}`"


def _home() -> Path:
    return Path(os.environ.get("TRAINYARD_HOME") or ".trainyard").resolve()


def _key_file() -> Path:
    return Path(os.environ.get("TRAINYARD_SECRET_KEY_FILE") or _home() / "secret.key")


def _database_file() -> Path | None:
    """Return the file of an SQLite database; None for other databases."""
    url = os.environ.get("TRAINYARD_DATABASE_URL")
    if not url:
        return _home() / "trainyard.sqlite3"
    try:
        parts = urlsplit(url)
    except ValueError:
        # The settings name the error.
        return None
    return Path(unquote(parts.path)) if parts.scheme == "sqlite" else None
