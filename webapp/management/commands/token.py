import re
from datetime import datetime, timedelta

from django.core.management.base import BaseCommand, CommandError, CommandParser

from jobs import clock
from jobs.actions import people, tokens
from jobs.errors import TrainyardError

UNITS = {"m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1)}


class Command(BaseCommand):
    help = "Make an API token for a person and print it, and nothing else, on stdout."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("user")
        parser.add_argument("--scopes", required=True, help=f"comma-separated: {', '.join(tokens.SCOPES)}")
        parser.add_argument("--expires", help="after so long: 12h, 30d; without it the token does not end")
        parser.add_argument("--name", default="made at the terminal")

    def handle(self, *, user: str, scopes: str, expires: str | None, name: str, **options: object) -> None:
        wanted = [scope.strip() for scope in scopes.split(",") if scope.strip()]
        end = ends_at(expires) if expires else None
        try:
            person = people.find_person(user)
            _, raw = tokens.create(person, by=None, scopes=wanted, name=name, expires=end)
        except TrainyardError as error:
            raise CommandError(error.message) from error
        self.stdout.write(raw)


def ends_at(text: str) -> datetime:
    """Return the time that lies so far ahead: `30d`, `12h`, `45m`."""
    match = re.fullmatch(r"(\d{1,5})([mhd])", text)
    if match is None:
        raise CommandError(f"--expires {text!r}: give a number and m, h or d, such as 30d")
    return clock.now() + int(match[1]) * UNITS[match[2]]
