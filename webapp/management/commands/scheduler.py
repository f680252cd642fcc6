import signal
import threading
from argparse import ArgumentParser
from pathlib import Path

from django.conf import settings
from django.core.management.base import CommandError

from jobs import database_use
from jobs.errors import DatabaseReplaced, ForeignInstallation
from jobs.logs import absent_installation
from jobs.logs.foreign_output import capture
from jobs.logs.lines import begin_part
from jobs.monitoring.exposition import Exposition
from jobs.monitoring.scheduler import SchedulerState
from jobs.monitoring.status import OPTION_HELP, BadStatusAddress, start_listener
from jobs.queries.compatibility import Incompatible
from jobs.scheduler import run
from webapp.management.part_command import PartCommand


class Command(PartCommand):
    help = "Assigns queued jobs to free slots and reaps lost ones. Of several, a lease elects one."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--status-address", metavar="HOST:PORT", help=OPTION_HELP)

    def handle(self, *, status_address: str | None, **_: object) -> None:
        begin_part("scheduler")
        capture("scheduler")
        stop = threading.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: stop.set())
        state = SchedulerState()
        try:
            start_listener(status_address, state.checks, lambda: Exposition(state.families))
            if (sentence := absent_installation.problem("scheduler")) is not None:
                raise CommandError(sentence)
            database_use.share(settings.DATABASES["default"], Path(settings.TRAINYARD_HOME))
            run(stop, state)
        except (Incompatible, ForeignInstallation, DatabaseReplaced, BadStatusAddress) as error:
            raise CommandError(str(error)) from error
