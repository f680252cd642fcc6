import asyncio
import os
from argparse import ArgumentParser

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from webapp.ops import broker, orphans
from webapp.ops.console import Console
from webapp.ops.errors import OpsError
from webapp.ops.home import Home
from webapp.ops.lock import HomeLock
from webapp.ops.parts import Options
from webapp.ops.prepare import database_trouble, prepare
from webapp.ops.supervisor import Supervisor


class Command(BaseCommand):
    help = "Starts everything and keeps it running: broker, web, scheduler, workers, prediction server."
    requires_system_checks: list[str] = []  # the parts check themselves; here they only cost time

    def add_arguments(self, parser: ArgumentParser) -> None:
        defaults = Options()
        parser.add_argument("--host", default=defaults.host, help="address to listen on")
        parser.add_argument("--port", type=int, default=defaults.port, help="the dashboard's; 0 picks one")
        parser.add_argument(
            "--serving-port",
            type=int,
            default=defaults.serving_port,
            help="the prediction server's; 0 picks one",
        )
        parser.add_argument("--workers", type=int, default=defaults.workers, help="worker processes")
        parser.add_argument(
            "--slots", type=int, help="slots of each worker; by default its devices, else its cores"
        )

    def handle(self, *, host: str, port: int, serving_port: int, workers: int, **given: object) -> None:
        slots = given["slots"]
        options = Options(host, port, serving_port, workers, slots if isinstance(slots, int) else None)
        home = Home(settings.TRAINYARD_HOME)
        home.create()
        lock = HomeLock(home.lock_file)
        try:
            lock.acquire()
            run(home, options)
        except OpsError as error:
            raise CommandError(str(error)) from error
        finally:
            lock.release()


def run(home: Home, options: Options) -> None:
    """Run the supervisor until it is told to stop."""
    console = Console(home.log)
    home.forget_urls()
    if left := orphans.sweep(home):
        console.say(f"Ended {left} processes that an earlier run had left behind.")
    supervisor = Supervisor(
        home=home,
        options=options,
        broker=broker.choose(os.environ, home),
        artifacts=settings.TRAINYARD_ARTIFACTS,
        console=console,
        database_trouble=database_trouble,
        prepare=lambda web: prepare(home, web, console.say),
    )
    try:
        asyncio.run(supervisor.run())
    finally:
        console.close()
