"""Writes backups from a running installation: a consistent database copy, keys and artifacts."""

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
MAX_MANIFEST_BYTES = 2**28


def local_artifacts(location: str) -> Path | None:
    """Return the artifact folder, or None for object storage."""
    return None if "://" in location else Path(location)


def copy_sqlite(source: Path, target: Path) -> None:
    """Copy a SQLite database consistently while it is in use; the copy has mode 0600."""
    # Created first, because sqlite3 would create it with the mode of the umask.
    os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o600))
    with (
        contextlib.closing(
            sqlite3.connect(f"{source.as_uri()}?mode=ro", uri=True, timeout=60)
        ) as source_connection,
        contextlib.closing(sqlite3.connect(target)) as target_connection,
    ):
        source_connection.backup(target_connection)


LIBPQ = {
    "HOST": "PGHOST",
    "PORT": "PGPORT",
    "USER": "PGUSER",
    "PASSWORD": "PGPASSWORD",
    "NAME": "PGDATABASE",
}
LIBPQ_OPTIONS = ("sslmode", "sslrootcert", "sslcert", "sslkey")


def dump_postgres(database: Mapping[str, Any], target: Path) -> None:
    """Dump a PostgreSQL database to `target` in `pg_dump`'s custom format.

    Raises:
        OpsError: `pg_dump` is not installed, or it failed.
    """
    run_postgres(["pg_dump", "--format=custom", "--no-owner", f"--file={target}"], database)


def run_postgres(command: list[str], database: Mapping[str, Any]) -> None:
    """Run a PostgreSQL program on Django's `database`. The password is passed in the environment.

    Raises:
        OpsError: the program is not installed, or it failed.
    """
    program = shutil.which(command[0])
    if program is None:
        raise OpsError(f"A PostgreSQL database needs `{command[0]}`; install postgresql-client.")
    variables = {variable: str(database[key]) for key, variable in LIBPQ.items() if database.get(key)}
    options = database.get("OPTIONS", {})
    variables |= {f"PG{name.upper()}": str(options[name]) for name in LIBPQ_OPTIONS if name in options}
    done = subprocess.run(  # noqa: S603  fixed programs and arguments
        [program, *command[1:]], env={**os.environ, **variables}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise OpsError(f"{command[0]} failed: {done.stderr.strip()}")


def manifest_text(backup: Path) -> str:
    """Return a backup's manifest.

    Raises:
        tarfile.TarError: it is no tar file, or it ends early.
        KeyError: it has no manifest.
    """
    with tarfile.open(backup) as tar:
        file = tar.extractfile(MANIFEST)
        if file is None:
            raise KeyError(MANIFEST)
        return file.read(MAX_MANIFEST_BYTES).decode(errors="replace")


def manifest_if_backup(file: Path) -> str | None:
    """Return a backup's manifest; None if the file is something else.

    Raises:
        OSError: the file cannot be read.
        OpsError: it is a damaged backup.
    """
    try:
        return manifest_text(file) if tarfile.is_tarfile(file) else None
    except (tarfile.TarError, KeyError) as error:
        raise OpsError(f"it is a tar file without a manifest, or damaged: {error}") from error


def back_up(
    home: Home,
    database: Mapping[str, Any],
    artifacts: Path | None,
    target: Path,
    *,
    audit: Mapping[str, Any] | None = None,
) -> int:
    """Write the database, the keys and all artifacts to the tar file `target`; return its size in bytes.

    Args:
        home: the installation.
        database: Django's `DATABASES["default"]`.
        artifacts: the local artifact folder; None if artifacts are in object storage, which has
            its own backups.
        target: the new file; it is created only once the backup is complete.
        audit: the audit chain's last row. Read before the call, it is in the database copy.
    """
    # Renamed at the end, so that a failed backup leaves an older file as it is.
    partial = target.with_name(f".{target.name}.partial")
    try:
        descriptor = os.open(partial, os.O_CREAT | os.O_TRUNC | os.O_RDWR, 0o600)
        with os.fdopen(descriptor, "w+b") as file, tempfile.TemporaryDirectory(dir=home.run) as scratch:
            with tarfile.open(fileobj=file, mode="w") as tar:
                _Writer(tar, audit).write(home, database, artifacts, Path(scratch))
            file.flush()
            os.fsync(file.fileno())
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)
    return target.stat().st_size


class _Writer:
    """Adds files to the tar, followed by a manifest with their digests."""

    def __init__(self, tar: tarfile.TarFile, audit: Mapping[str, Any] | None) -> None:
        self._tar, self._audit = tar, audit
        self._digests: dict[str, str] = {}

    def write(self, home: Home, database: Mapping[str, Any], artifacts: Path | None, scratch: Path) -> None:
        # The database first: artifacts never change and are only added, so the tar then contains every
        # artifact that the copy names, unless retention deletes one in between.
        if database["ENGINE"].endswith("sqlite3"):
            copy_sqlite(Path(database["NAME"]), scratch / SQLITE_MEMBER)
            self._add(scratch / SQLITE_MEMBER, SQLITE_MEMBER)
        else:
            dump_postgres(database, scratch / POSTGRES_MEMBER)
            self._add(scratch / POSTGRES_MEMBER, POSTGRES_MEMBER)
        for secret in sorted(path for path in home.root.glob("*.key") if path.is_file()):
            self._add(secret, secret.name)
        for path, name in _artifact_members(artifacts):
            # Retention may have deleted the file since it was listed.
            with contextlib.suppress(FileNotFoundError):
                self._add(path, name)
        self._add_manifest()

    def _add(self, path: Path, name: str) -> None:
        with path.open("rb") as file:
            self._digests[name] = hashlib.file_digest(file, "sha256").hexdigest()
            file.seek(0)
            info = self._tar.gettarinfo(arcname=name, fileobj=file)
            self._tar.addfile(info, file)

    def _add_manifest(self) -> None:
        manifest: dict[str, Any] = {
            "format": FORMAT,
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
            "files": self._digests,
        }
        if self._audit is not None:
            manifest["audit"] = dict(self._audit)
        text = json.dumps(manifest, indent=1).encode()
        info = tarfile.TarInfo(MANIFEST)
        info.size, info.mode = len(text), 0o600
        self._tar.addfile(info, io.BytesIO(text))


def _artifact_members(artifacts: Path | None) -> Iterator[tuple[Path, str]]:
    """Yield each complete artifact and its name in the tar."""
    if artifacts is None or not artifacts.is_dir():
        return
    for path in sorted(artifacts.rglob("*")):
        name = path.relative_to(artifacts)
        # The store writes to names that begin with a dot and renames them once they are complete.
        if path.is_file() and not any(part.startswith(".") for part in name.parts):
            yield path, f"artifacts/{name}"
