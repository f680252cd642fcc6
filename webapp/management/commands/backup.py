import os
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError

from jobs import unfinished_restore
from jobs.queries.audit import audit_anchors
from jobs.queries.storage.artifacts import stored_digests
from webapp.ops import backup
from webapp.ops.database.contents import require_installation
from webapp.ops.errors import OpsError
from webapp.ops.home import Home
from webapp.settings import places


class Command(BaseCommand):
    help = (
        "Writes database, keys and artifacts to a tar file, and reads it back. Trainyard may be running. "
        "With --verify it only reads a file that was written before."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, help="the new tar file; an existing one is replaced")
        parser.add_argument(
            "--verify", action="store_true", help="read this backup from its beginning to its end"
        )

    def handle(self, *, file: Path, verify: bool, **_: object) -> None:
        home = Home(settings.TRAINYARD_HOME)
        try:
            home.create()
            if verify:
                self._verify(home, file)
            else:
                self._back_up(home, file)
        except (OpsError, OSError) as error:
            raise CommandError(str(error)) from error

    def _verify(self, home: Home, file: Path) -> None:
        with backup.scratch_folder(home) as scratch:
            read = backup.verify(file, scratch)
        created = read.manifest.get("created", "an unknown time")
        self.stdout.write(f"{file} can be restored: {len(read.digests)} files, written at {created}.")

    def _back_up(self, home: Home, file: Path) -> None:
        if (sentence := unfinished_restore.problem(home.root)) is not None:
            raise OpsError(sentence)
        require_installation()
        _require_place(file)
        artifacts = backup.local_artifacts(settings.TRAINYARD_ARTIFACTS)
        written = backup.back_up(
            home,
            settings.DATABASES["default"],
            artifacts,
            file,
            audit=_anchor(),
            secret_key=places.secret_key_file(home.root),
            expected=_stored_digests(),
        )
        self.stdout.write(f"{file}: {written.bytes / 2**20:.1f} MiB, {written.files} files, read back.")
        for note in written.notes:
            self.stderr.write(note)
        if artifacts is None:
            self.stdout.write(f"Artifacts are stored in {settings.TRAINYARD_ARTIFACTS} and are not included.")


def _require_place(file: Path) -> None:
    """Require that the file can be written, before everything is copied.

    Raises:
        OpsError: it cannot.
    """
    folder = file.absolute().parent
    if not folder.is_dir():
        raise OpsError(f"{folder} is no folder: create it, for the user of Trainyard alone.")
    if file.is_dir():
        raise OpsError(f"{file} is a folder: name a file in it, such as {file / 'trainyard.tar'}.")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise OpsError(f"{folder} cannot be written by this user: let the user of Trainyard own it.")


def _anchor() -> dict[str, Any] | None:
    """Return the audit chain's last row; None if the database is older than this program or empty."""
    try:
        return audit_anchors.current_anchor().model_dump(mode="json")
    except DatabaseError:
        return None


def _stored_digests() -> list[str]:
    """Return the artifacts that the database names; none if it is older than this program or empty."""
    try:
        return stored_digests()
    except DatabaseError:
        return []
