import json

from django.conf import settings
from django.core.management.base import CommandError, CommandParser

from jobs.actions.people import people
from jobs.errors import TrainyardError
from jobs.queries.people.people import people_accounts
from webapp.accounts.reset import reset_login
from webapp.management.installation_command import InstallationCommand
from webapp.ops.home import Home

DEFAULT = "http://127.0.0.1:8000"


class Command(InstallationCommand):
    help = "Create a user if there is none of that name, and print a one-time login link."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("user")
        parser.add_argument("--admin", action="store_true", help="an administrator of the installation")
        parser.add_argument(
            "--reset",
            action="store_true",
            help="remove a lost password and second factor; ends all sessions and unused login links",
        )

    def handle(self, *, user: str, admin: bool, reset: bool, **options: object) -> None:
        try:
            person = people_accounts().filter(username=user).first()
            exists = person is not None
            if person is None:
                person = people.add_person(user, by=None, admin=admin)
            # Before the reset: a refused command changes nothing.
            people.require_login_allowed(person)
            if reset and exists:
                reset_login(person)
            link = people.create_login_link(person, by=None)
        except TrainyardError as error:
            raise CommandError(error.message) from error
        if exists:
            # Without e-mail, a link from the terminal is the only way to log in after a lost password.
            self.stderr.write(f"{user} exists already; this is a new login link.")
        if admin and not person.is_superuser:
            self.stderr.write(
                f"{user} is still no administrator: --admin is for new users. Let an administrator grant the "
                "right on the page People, or give another name."
            )
        if (known := address()) is None:
            self.stderr.write(
                f"The address of the dashboard is not known, so the link begins with {DEFAULT}: replace this "
                "if it listens elsewhere, or set TRAINYARD_PUBLIC_URL."
            )
        self.stdout.write(f"{known or DEFAULT}{link}")


def address() -> str | None:
    """Return the dashboard's URL: the public one, or the one that a running `up` has written."""
    if settings.TRAINYARD_PUBLIC_URL:
        return str(settings.TRAINYARD_PUBLIC_URL)
    try:
        return str(json.loads(Home(settings.TRAINYARD_HOME).urls_file.read_text())["web"])
    except (OSError, ValueError, KeyError):
        return None
