"""Django's settings of the database from its address."""

import os
from pathlib import Path
from urllib.parse import parse_qsl, unquote

from django.core.exceptions import ImproperlyConfigured

from jobs import private_files
from jobs.logs.masking import mask
from webapp.settings.env import parts_of, require_private

# Seconds and tries; `tcp_user_timeout` is in milliseconds. By default the driver waits for a machine that
# vanished for a quarter of an hour, or for ever.
SILENCE = {
    "connect_timeout": "5",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "20000",
    # For the server: it would keep the transaction and the locks of a machine that vanished for two hours.
    # It gives up sooner than the lease of an attempt ends, so that the work can be placed elsewhere.
    "options": (
        "-c tcp_keepalives_idle=5 -c tcp_keepalives_interval=2 -c tcp_keepalives_count=4 "
        "-c tcp_user_timeout=13000"
    ),
}
"""Options of PostgreSQL's driver that end a connection of which one end became silent."""


def database(home_folder: Path) -> dict[str, object]:
    """Return Django's database settings from `TRAINYARD_DATABASE_URL`; by default SQLite in the home."""
    url = os.environ.get("TRAINYARD_DATABASE_URL")
    if not url and not home_folder.exists():
        # The command needs no installation, or refuses. `check` and `makemigrations` ask any database.
        return _sqlite_settings(":memory:")
    return database_at(url or f"sqlite:///{home_folder / 'trainyard.sqlite3'}", "TRAINYARD_DATABASE_URL")


def database_at(url: str, name: str = "the address") -> dict[str, object]:
    """Return Django's settings of the database at an address. An error's message begins with `name`."""
    parts = parts_of(name, url)
    if parts.scheme == "sqlite":
        return sqlite(Path(unquote(parts.path)), name)
    if parts.scheme in ("postgres", "postgresql"):
        # As in libpq: `?host=` names a socket folder, `?sslmode=` and others go to the driver.
        options = dict(parse_qsl(parts.query))
        host = unquote(parts.hostname or options.pop("host", ""))
        return {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": unquote(parts.path.lstrip("/")),
            "USER": unquote(parts.username or ""),
            "PASSWORD": unquote(parts.password or ""),
            "HOST": host,
            "PORT": str(parts.port or ""),
            # A pool, which only the web server has, refuses connections that stay open.
            "CONN_MAX_AGE": 0,
            "OPTIONS": {**SILENCE, **options},
        }
    raise ImproperlyConfigured(f"{name}={mask(url)!r}: give sqlite:///path or postgres://…")


def sqlite(path: Path, name: str = "the address") -> dict[str, object]:
    """Return settings for SQLite with many writers: WAL, and transactions that begin with the write lock.

    An error's message begins with `name`.
    """
    if not path.parent.is_dir():
        raise ImproperlyConfigured(
            f"{name}: there is no folder {str(path.parent)!r} for the database; create it"
        )
    # The database may lie outside the home.
    for suffix in ("", "-wal", "-shm", "-journal"):
        require_private(private_files.make_file_private, path.with_name(path.name + suffix), name)
    return _sqlite_settings(str(path))


def _sqlite_settings(name: str) -> dict[str, object]:
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": name,
        # Under ASGI a connection that stays open after its request is never used again.
        "CONN_MAX_AGE": 0,
        "OPTIONS": {
            # A deferred transaction that writes after a read fails at once with "database is locked" if
            # another one wrote in between; the timeout does not apply to it.
            "transaction_mode": "IMMEDIATE",
            "timeout": 20,
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA foreign_keys=ON;",
        },
    }
