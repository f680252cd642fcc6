from typing import Any

from django.core.management.base import BaseCommand, CommandError

from jobs.queries import compatibility


class InstallationCommand(BaseCommand):
    """A command that uses the database, and refuses one of another version before it writes anything."""

    requires_system_checks: list[str] = []

    def execute(self, *args: Any, **options: Any) -> str | None:
        """Compare program and database first."""
        try:
            compatibility.require()
        except compatibility.Incompatible as error:
            raise CommandError(str(error)) from error
        return super().execute(*args, **options)
