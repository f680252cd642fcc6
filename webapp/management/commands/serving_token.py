from datetime import timedelta

from django.core.management.base import CommandError, CommandParser

from jobs.actions.people import service_tokens
from jobs.errors import TrainyardError
from webapp.management.installation_command import InstallationCommand
from webapp.ops.durations import parse_duration


class Command(InstallationCommand):
    help = (
        "Create the credential of a prediction server and print only the credential to stdout: the server "
        "reports under NAME. Each server needs one of its own."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="lowercase letters, digits, '.', '_' and '-'")
        what = parser.add_mutually_exclusive_group()
        what.add_argument("--rotate", action="store_true", help="replace it and print the new one")
        what.add_argument("--revoke", action="store_true", help="end the credential at once")
        parser.add_argument(
            "--overlap",
            default="24h",
            help="with --rotate: how long the old one stays valid, such as 24h or 0m",
        )

    def handle(self, *, name: str, rotate: bool, revoke: bool, overlap: str, **options: object) -> None:
        try:
            if revoke:
                service_tokens.revoke_credential(name, by=None)
                self.stderr.write(f"The credential {name} is revoked.")
            elif rotate:
                self.stdout.write(service_tokens.rotate_credential(name, overlap=_overlap(overlap), by=None))
            else:
                self.stdout.write(service_tokens.create_credential(name, by=None))
        except TrainyardError as error:
            raise CommandError(_with_flag(error)) from error


def _overlap(text: str) -> timedelta:
    duration = parse_duration(text)
    if duration is None:
        raise CommandError(f"--overlap {text!r}: give a number and m, h or d, such as 24h")
    return duration


def _with_flag(error: TrainyardError) -> str:
    # The flag is of this command alone, so the message of the action does not name it.
    return f"{error.message} (--rotate replaces it)" if error.code == "conflict" else error.message
