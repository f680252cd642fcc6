"""Backups of a running installation: the database through its own online copy, artifacts by their digest."""

import contextlib
import hashlib
import io
import json
import os
import shutil
import sqlite3
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from webapp.ops.errors import OpsError
from webapp.ops.home import Home

MANIFEST = "manifest.json"
SQLITE_MEMBER, POSTGRES_MEMBER = "database.sqlite3", "database.pgdump"
FORMAT = 1


def local_artifacts(place: str) -> Path | None:
    """Return the artifact folder, or None for object storage."""
    return None if "://" in place else Path(place)


def copy_sqlite(source: Path, target: Path) -> None:
    """Copy a SQLite database while others write to it, to a consistent file of mode 0600."""
    os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o600))
    with (
        contextlib.closing(sqlite3.connect(f"{source.as_uri()}?mode=ro", uri=True, timeout=60)) as reading,
        contextlib.closing(sqlite3.connect(target)) as writing,
    ):
        reading.backup(writing)


LIBPQ = {
    "HOST": "PGHOST",
    "PORT": "PGPORT",
    "USER": "PGUSER",
    "PASSWORD": "PGPASSWORD",
    "NAME": "PGDATABASE",
}
LIBPQ_OPTIONS = ("sslmode", "sslrootcert", "sslcert", "sslkey")


def dump_postgres(database: Mapping[str, Any], target: Path) -> None:
    """Write `pg_dump`'s custom format to `target`.

    Raises:
        OpsError: there is no `pg_dump`, or it failed.
    """
    run_postgres(["pg_dump", "--format=custom", "--no-owner", f"--file={target}"], database)


def run_postgres(command: list[str], database: Mapping[str, Any]) -> None:
    """Run a PostgreSQL program against Django's `database`; the password goes by the environment.

    Raises:
        OpsError: the program is not installed, or it failed.
    """
    program = shutil.which(command[0])
    if program is None:
        raise OpsError(f"A PostgreSQL database needs `{command[0]}`; install postgresql-client.")
    given = {variable: str(database[key]) for key, variable in LIBPQ.items() if database.get(key)}
    options = database.get("OPTIONS", {})
    given |= {f"PG{name.upper()}": str(options[name]) for name in LIBPQ_OPTIONS if name in options}
    done = subprocess.run(  # noqa: S603  one of two programs, its arguments ours
        [program, *command[1:]], env={**os.environ, **given}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise OpsError(f"{command[0]} failed: {done.stderr.strip()}")


def back_up(home: Home, database: Mapping[str, Any], artifacts: Path | None, target: Path) -> int:
    """Write the database, the secret key and every artifact into the tar `target`; return its bytes.

    The database is copied first. Artifacts never change and are only added, so the copy never names
    one that the tar lacks, unless retention removes it in between; that one is reported by `restore`.

    Args:
        home: the installation.
        database: Django's `DATABASES["default"]`.
        artifacts: the local artifact folder; None when artifacts lie in object storage, which has
            its own backups.
        target: the new file; it appears only when complete.
    """
    partial = target.with_name(f".{target.name}.partial")
    try:
        with tempfile.TemporaryDirectory(dir=home.run) as scratch, _private(partial) as file:
            with tarfile.open(fileobj=file, mode="w") as tar:
                _Writer(tar).write(home, database, artifacts, Path(scratch))
            file.flush()
            os.fsync(file.fileno())
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)
    return target.stat().st_size


@contextlib.contextmanager
def _private(path: Path) -> Iterator[Any]:
    with os.fdopen(os.open(path, os.O_CREAT | os.O_TRUNC | os.O_RDWR, 0o600), "w+b") as file:
        yield file


class _Writer:
    """Adds files to the tar, and their digests to the manifest that ends it."""

    def __init__(self, tar: tarfile.TarFile) -> None:
        self._tar = tar
        self._digests: dict[str, str] = {}

    def write(self, home: Home, database: Mapping[str, Any], artifacts: Path | None, scratch: Path) -> None:
        if database["ENGINE"].endswith("sqlite3"):
            copy_sqlite(Path(database["NAME"]), scratch / SQLITE_MEMBER)
            self._add(scratch / SQLITE_MEMBER, SQLITE_MEMBER)
        else:
            dump_postgres(database, scratch / POSTGRES_MEMBER)
            self._add(scratch / POSTGRES_MEMBER, POSTGRES_MEMBER)
        for secret in sorted(path for path in home.root.glob("*.key") if path.is_file()):
            self._add(secret, secret.name)
        for path in _files(artifacts):
            # One that retention removed since it was listed is simply not there.
            with contextlib.suppress(FileNotFoundError):
                self._add(path, f"artifacts/{path.relative_to(artifacts)}" if artifacts else path.name)
        self._close()

    def _add(self, path: Path, name: str) -> None:
        with path.open("rb") as file:
            self._digests[name] = hashlib.file_digest(file, "sha256").hexdigest()
            file.seek(0)
            info = self._tar.gettarinfo(arcname=name, fileobj=file)
            self._tar.addfile(info, file)

    def _close(self) -> None:
        manifest = {
            "format": FORMAT,
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
            "files": self._digests,
        }
        text = json.dumps(manifest, indent=1).encode()
        info = tarfile.TarInfo(MANIFEST)
        info.size, info.mode = len(text), 0o600
        self._tar.addfile(info, io.BytesIO(text))


def _files(artifacts: Path | None) -> list[Path]:
    """List finished artifacts; names that begin with a dot are still being written."""
    if artifacts is None or not artifacts.is_dir():
        return []
    return sorted(
        path
        for path in artifacts.rglob("*")
        if path.is_file() and not any(part.startswith(".") for part in path.relative_to(artifacts).parts)
    )
