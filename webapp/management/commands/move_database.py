from argparse import ArgumentParser
from urllib.parse import urlsplit

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, CommandError
from django.db import connection

from jobs import program
from webapp.ops.errors import OpsError
from webapp.ops.home import Home
from webapp.ops.moves.move import Move, move_database
from webapp.settings import databases


class Command(BaseCommand):
    help = (
        "Copies the database to an empty one of either kind, such as from SQLite to PostgreSQL, and compares "
        "every row. All parts must be stopped. The present database is not changed."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("url", help="the new database: sqlite:///path or postgres://user@host/name")

    def handle(self, *, url: str, **_: object) -> None:
        # This process would otherwise be one that uses the database.
        connection.close()
        try:
            target = databases.database_at(url)
            done = move_database(
                Home(settings.TRAINYARD_HOME), settings.DATABASES["default"], target, self.stdout.write
            )
        except (ImproperlyConfigured, OpsError) as error:
            raise CommandError(str(error)) from error
        self._describe(done, url)

    def _describe(self, done: Move, url: str) -> None:
        for moved in done.tables:
            if moved.checksum.rows:
                self.stdout.write(
                    f"{moved.checksum.rows:>12,} rows  {moved.table}  sha256 {moved.checksum.text[:16]}"
                )
        self.stdout.write(f"{done.rows:,} rows were moved, and are the same in both databases.")
        self.stdout.write(done.audit.message)
        for name in done.left_out:
            self.stdout.write(f"The table {name} is not Trainyard's: it was left out.")
        self.stdout.write(
            f"Now set TRAINYARD_DATABASE_URL={_without_password(url)} for all parts on all machines, and "
            f"start them, such as with `{program.command_line('up')}`. The former database is as it was: a "
            "part that still has its address would use it."
        )


def _without_password(url: str) -> str:
    password = urlsplit(url).password
    return url if password is None else url.replace(f":{password}@", ":…@", 1)
