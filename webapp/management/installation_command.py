from typing import Any

from django.core.management.base import BaseCommand, CommandError

from jobs.actions.own_installation import require_own_installation
from jobs.errors import ForeignInstallation
from jobs.queries.compatibility import Incompatible


class InstallationCommand(BaseCommand):
    """A command that changes the installation.

    It refuses a database of another version, and the home or key of another installation, before it writes
    anything.
    """

    requires_system_checks: list[str] = []

    def execute(self, *args: Any, **options: Any) -> str | None:
        """Compare program, home and key with the database first."""
        try:
            require_own_installation(signs=True)
        except (Incompatible, ForeignInstallation) as error:
            raise CommandError(str(error)) from error
        return super().execute(*args, **options)
