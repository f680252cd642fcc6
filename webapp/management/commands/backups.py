import signal
import sys
import time
from argparse import ArgumentParser, ArgumentTypeError
from datetime import timedelta
from pathlib import Path

from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError, connections

from webapp.ops import regular_backups
from webapp.ops.database.contents import require_installation
from webapp.ops.durations import parse_duration
from webapp.ops.errors import OpsError


class Command(BaseCommand):
    help = (
        "Writes a backup into a folder and deletes the oldest ones there. With --every it does so again and "
        "again, with --check it only checks that the newest one is recent."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("folder", type=Path, help="the folder of the backups")
        parser.add_argument("--every", type=_duration, help="the time between two, such as 24h or 30m")
        parser.add_argument("--keep", type=_count, default=7, help="how many are kept, 7 by default")
        parser.add_argument(
            "--check", action="store_true", help="exit status 1 if the newest is older than two intervals"
        )

    def handle(self, *, folder: Path, every: timedelta | None, keep: int, check: bool, **_: object) -> None:
        if not folder.is_dir():
            raise CommandError(f"{folder} is no folder: create it, for the user of Trainyard alone")
        if check:
            try:
                regular_backups.require_recent(folder, every or timedelta(days=1))
                # Recent ones may be of another installation than the one that has these variables.
                require_installation()
            except OpsError as error:
                raise CommandError(str(error)) from error
        elif every is None:
            self._back_up(folder, keep)
        else:
            # As the first process of a container it would ignore the signal.
            signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
            self._repeat(folder, every, keep)

    def _repeat(self, folder: Path, every: timedelta, keep: int) -> None:
        while True:
            time.sleep(regular_backups.seconds_until_due(folder, every))
            try:
                self._back_up(folder, keep)
            except (CommandError, DatabaseError, OSError) as error:
                self.stderr.write(f"No backup was made: {error}")
                self.stderr.flush()
                time.sleep(min(every, regular_backups.RETRY).total_seconds())

    def _back_up(self, folder: Path, keep: int) -> None:
        def write(file: Path) -> None:
            call_command("backup", str(file), stdout=self.stdout, stderr=self.stderr)

        try:
            regular_backups.back_up_into(folder, write, keep=keep)
        finally:
            # It would be too old at the next time.
            connections.close_all()
        self.stdout.flush()


def _duration(text: str) -> timedelta:
    if not (duration := parse_duration(text)):
        raise ArgumentTypeError(f"{text!r} is no time, such as 24h, 30m or 7d")
    return duration


def _count(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise ArgumentTypeError(f"{text!r} is no number of backups, such as 7")
    return int(text)
