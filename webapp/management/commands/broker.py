import os

from django.conf import settings
from django.core.management.base import CommandError

from jobs.logs.converter import convert_later_output
from jobs.logs.start_errors import writes_json
from webapp.management.part_command import PartCommand
from webapp.ops import broker
from webapp.ops.errors import OpsError
from webapp.ops.home import Home
from webapp.ops.parts import exec_command


class Command(PartCommand):
    help = "Runs only the broker that `up` would start, for services of systemd on one machine."

    def handle(self, **_: object) -> None:
        home = Home(settings.TRAINYARD_HOME)
        try:
            home.create()
            chosen = broker.choose(os.environ, home)
        except OpsError as error:
            raise CommandError(str(error)) from error
        if chosen.argv is None:
            raise CommandError(
                "TRAINYARD_REDIS_URL names another broker: stop this service, or unset the variable."
            )
        if writes_json():
            convert_later_output("broker")
        exec_command(chosen.argv)
