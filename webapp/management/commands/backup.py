from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError

from jobs.queries.audit import audit_anchors
from webapp.ops.backup import back_up, local_artifacts
from webapp.ops.errors import OpsError
from webapp.ops.home import Home


class Command(BaseCommand):
    help = "Writes database, keys and artifacts to a tar file. Trainyard may be running."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, help="the new tar file; an existing one is replaced")

    def handle(self, *, file: Path, **_: object) -> None:
        home = Home(settings.TRAINYARD_HOME)
        home.create()
        artifacts = local_artifacts(settings.TRAINYARD_ARTIFACTS)
        try:
            size = back_up(home, settings.DATABASES["default"], artifacts, file, audit=_anchor())
        except (OpsError, OSError) as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"{file}: {size / 2**20:.1f} MiB")
        if artifacts is None:
            self.stdout.write(f"Artifacts are stored in {settings.TRAINYARD_ARTIFACTS} and are not included.")


def _anchor() -> dict[str, Any] | None:
    """Return the audit chain's last row; None if the database is older than this program or empty."""
    try:
        return audit_anchors.current_anchor().model_dump(mode="json")
    except DatabaseError:
        return None
