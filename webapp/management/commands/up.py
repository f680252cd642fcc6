import asyncio
import os
from argparse import ArgumentParser

from django.conf import settings
from django.core.management.base import CommandError

from webapp.management.part_command import PartCommand
from webapp.ops import broker, orphans
from webapp.ops.console import Console
from webapp.ops.errors import OpsError
from webapp.ops.home import Home
from webapp.ops.lock import HomeLock
from webapp.ops.parts import Options
from webapp.ops.preparation import database_error, prepare, sandbox_hint
from webapp.ops.supervisor import Supervisor


class Command(PartCommand):
    help = "Starts everything and keeps it running: broker, web, scheduler, workers, prediction server."

    def add_arguments(self, parser: ArgumentParser) -> None:
        defaults = Options()
        parser.add_argument("--host", default=defaults.host, help="address to listen on")
        parser.add_argument(
            "--port", type=int, default=defaults.port, help="port of the dashboard; 0 chooses a free one"
        )
        parser.add_argument(
            "--serving-port",
            type=int,
            default=defaults.serving_port,
            help="port of the prediction server; 0 chooses a free one",
        )
        parser.add_argument("--workers", type=int, default=defaults.workers, help="worker processes")
        parser.add_argument(
            "--slots",
            type=int,
            help="slots of each worker; default: the number of its devices, else of cores",
        )

    def handle(
        self, *, host: str, port: int, serving_port: int, workers: int, slots: int | None, **_: object
    ) -> None:
        options = Options(host, port, serving_port, workers, slots)
        home = Home(settings.TRAINYARD_HOME)
        lock = HomeLock(home.lock_file)
        try:
            home.create()
            lock.acquire()
            run(home, options)
        except OpsError as error:
            raise CommandError(str(error)) from error
        finally:
            lock.release()


def run(home: Home, options: Options) -> None:
    """Run the supervisor until a signal."""
    console = Console(home.log)
    # A killed run leaves its file, and `demo` and scripts take the file as the sign that all parts are ready.
    home.remove_urls()
    if killed := orphans.sweep(home):
        console.message(f"Killed {killed} orphaned processes of an earlier run.")
    if hint := sandbox_hint(os.environ):
        console.message(hint)
    supervisor = Supervisor(
        home=home,
        options=options,
        broker=broker.choose(os.environ, home),
        artifacts=settings.TRAINYARD_ARTIFACTS,
        console=console,
        database_error=database_error,
        prepare=lambda web: prepare(home, web, console.message),
    )
    try:
        asyncio.run(supervisor.run())
    finally:
        console.close()
