from argparse import ArgumentParser
from pathlib import Path

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from webapp.ops.backup import local_artifacts
from webapp.ops.errors import OpsError
from webapp.ops.home import Home
from webapp.ops.restore import restore


class Command(BaseCommand):
    help = "Restores a backup into an empty home after verifying all its files."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, help="a file written by `manage.py backup`")
        parser.add_argument("--force", action="store_true", help="replace the contents of the home")

    def handle(self, *, file: Path, force: bool, **_: object) -> None:
        home = Home(settings.TRAINYARD_HOME)
        artifacts = local_artifacts(settings.TRAINYARD_ARTIFACTS)
        try:
            count = restore(home, settings.DATABASES["default"], artifacts, file, force=force)
        except OpsError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"{count} files restored into {home.root}. Start it with `manage.py up`.")
