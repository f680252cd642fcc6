import signal
import threading

from django.core.management.base import BaseCommand, CommandError

from jobs.errors import ForeignInstallation
from jobs.queries.compatibility import Incompatible
from jobs.scheduler import run


class Command(BaseCommand):
    help = "Assigns queued jobs to free slots and reaps lost ones. Of several, a lease elects one."
    requires_system_checks: list[str] = []

    def handle(self, **_: object) -> None:
        stop = threading.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: stop.set())
        try:
            run(stop)
        except (Incompatible, ForeignInstallation) as error:
            raise CommandError(str(error)) from error
