import json
import subprocess
from argparse import ArgumentParser
from pathlib import Path

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from jobs import program
from jobs.program import ROOT
from webapp.ops.backup import local_artifacts, manifest_text
from webapp.ops.errors import OpsError
from webapp.ops.home import Home
from webapp.ops.parts import management_argv
from webapp.ops.restore import restore


class Command(BaseCommand):
    help = "Restores a backup into an empty home after verifying all its files."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, help="a file written by `backup`")
        parser.add_argument("--force", action="store_true", help="replace the contents of the home")

    def handle(self, *, file: Path, force: bool, **_: object) -> None:
        home = Home(settings.TRAINYARD_HOME)
        artifacts = local_artifacts(settings.TRAINYARD_ARTIFACTS)
        try:
            count = restore(home, settings.DATABASES["default"], artifacts, file, force=force)
        except OpsError as error:
            raise CommandError(str(error)) from error
        self._verify_audit_log(file)
        self.stdout.write(
            f"{count} files restored into {home.root}. Start it with `{program.command_line('up')}`."
        )

    def _verify_audit_log(self, backup: Path) -> None:
        """Compare the restored audit log with the head that the backup's manifest names."""
        if "audit" not in json.loads(manifest_text(backup)):
            self.stdout.write(
                "The backup has no copy of the audit log's head. After the start, run "
                f"`{program.command_line('audit verify')}`."
            )
            return
        # A process of its own: this one has not read the restored secret key.
        command = management_argv("audit", "verify", "--anchor", str(backup.resolve()))
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603
        if done.returncode:
            self.stderr.write(f"The restored audit log is not valid. {done.stderr.strip()}")
        else:
            self.stdout.write(done.stdout.strip())
