from typing import Any

from django.conf import settings
from django.core.management.base import CommandError

from jobs.actions.storage import ownership
from webapp.management.installation_command import InstallationCommand


class Command(InstallationCommand):
    help = (
        "Lets the artifact store (TRAINYARD_ARTIFACTS) belong to this installation. Another one that had it "
        "can only read it from then on, and files that only that one needs are collected."
    )

    def handle(self, **_: Any) -> None:
        try:
            former = ownership.adopt()
        except OSError as error:
            raise CommandError(f"{settings.TRAINYARD_ARTIFACTS} cannot be written: {error}") from error
        self.stdout.write(f"{settings.TRAINYARD_ARTIFACTS} belongs to this installation now.")
        if former is not None:
            self.stdout.write(
                f"It belonged to the installation {former[:8]}, which can only read it from now on. Stop "
                "that one, or give it a store of its own: files that only it needs are deleted in a day."
            )
