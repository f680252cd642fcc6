from datetime import datetime

from django.core.management.base import CommandError, CommandParser

from jobs import clock
from jobs.actions.people import people, tokens
from jobs.errors import TrainyardError
from webapp.management.installation_command import InstallationCommand
from webapp.ops.durations import parse_duration


class Command(InstallationCommand):
    help = "Create an API token for a user and print only the token to stdout."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("user")
        parser.add_argument(
            "--scopes", required=True, help=f"comma-separated: {', '.join(tokens.OFFERED_SCOPES)}"
        )
        parser.add_argument(
            "--expires", help="lifetime, such as 12h or 30d; by default the token does not expire"
        )
        parser.add_argument(
            "--endpoints",
            help="comma-separated, with the scope predict; by default all of the user's projects",
        )
        parser.add_argument("--name", default="made at the terminal")

    def handle(
        self,
        *,
        user: str,
        scopes: str,
        expires: str | None,
        endpoints: str | None,
        name: str,
        **options: object,
    ) -> None:
        scope_names = [scope.strip() for scope in scopes.split(",") if scope.strip()]
        end = expiry_after(expires) if expires else None
        asked = [word.strip() for word in endpoints.split(",") if word.strip()] if endpoints else None
        try:
            person = people.find_person(user)
            _, raw = tokens.create(
                person, by=None, scopes=scope_names, name=name, expires=end, endpoints=asked
            )
        except TrainyardError as error:
            raise CommandError(error.message) from error
        self.stdout.write(raw)


def expiry_after(text: str) -> datetime:
    """Return the time after a duration such as `30d`, `12h` or `45m`."""
    duration = parse_duration(text)
    if duration is None:
        raise CommandError(f"--expires {text!r}: give a number and m, h or d, such as 30d")
    return clock.now() + duration
