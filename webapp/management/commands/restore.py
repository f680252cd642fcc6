import json
import subprocess
import sys
from argparse import ArgumentParser
from pathlib import Path

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from jobs import program
from jobs.program import ROOT
from webapp.management.commands.audit import NOT_READ
from webapp.ops.backup import local_artifacts
from webapp.ops.backup_file import manifest_if_backup
from webapp.ops.errors import OpsError
from webapp.ops.home import Home
from webapp.ops.parts import management_argv
from webapp.ops.restore import restore
from webapp.settings import places


class Command(BaseCommand):
    help = (
        "Restores a backup into an empty home after verifying all its files; or only the database, from a "
        "copy that an upgrade has made."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, help="a file written by `backup`, or by an upgrade")
        parser.add_argument("--force", action="store_true", help="replace the contents of the home")

    def handle(self, *, file: Path, force: bool, **_: object) -> None:
        home = Home(settings.TRAINYARD_HOME)
        artifacts = local_artifacts(settings.TRAINYARD_ARTIFACTS)
        key = places.secret_key_file(home.root)
        try:
            count = restore(home, settings.DATABASES["default"], artifacts, file, force=force, secret_key=key)
        except OpsError as error:
            raise CommandError(str(error)) from error
        # Before the log is verified, which may fail: the files are in their places.
        self.stdout.write(
            f"{count} files restored into {home.root}. Start it with `{program.command_line('up')}`."
        )
        self._verify_audit_log(file)

    def _verify_audit_log(self, backup: Path) -> None:
        """Verify the restored audit log, also against the head that the backup's manifest names.

        The exit status is 1 if it is not valid.
        """
        manifest = manifest_if_backup(backup)
        anchor: tuple[str, ...] = ()
        if manifest is not None and "audit" in json.loads(manifest):
            anchor = ("--anchor", str(backup.resolve()))
        else:
            self.stdout.write(
                "The backup has no copy of the audit log's head: rows that were removed from its end are not "
                "missed."
            )
        # A process of its own: this one has not read the restored secret key.
        command = management_argv("audit", "verify", *anchor)
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603
        if done.returncode == NOT_READ:
            self.stdout.write(
                "The audit log could not be verified yet: the database is older than this program. After the "
                f"start, run `{program.command_line('audit verify')}`."
            )
        elif done.returncode:
            self.stderr.write(f"The restored audit log is not valid. {done.stderr.strip()}")
            sys.exit(1)
        else:
            self.stdout.write(done.stdout.strip())
