from argparse import ArgumentParser

from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError

from jobs.actions.own_installation import require_own_installation
from jobs.errors import ForeignInstallation
from webapp.ops import ports
from webapp.ops.errors import OpsError
from webapp.ops.home import Home
from webapp.ops.parts import exec_command, web_argv
from webapp.ops.preparation import prepare


class Command(BaseCommand):
    help = "Runs only the web server, for installations on several machines; `up` runs everything on one."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
        parser.add_argument("--port", type=int, default=8000, help="port to listen on")
        parser.add_argument("--migrate", action="store_true", help="migrate the database first")

    def handle(self, *, host: str, port: int, migrate: bool, **_: object) -> None:
        try:
            listener = ports.listen(host, port, flag="--port")
            home = Home.from_environment()
            home.create()
        except OpsError as error:
            raise CommandError(str(error)) from error
        try:
            if migrate:
                url = ports.url(host, ports.port_of(listener))
                for line in prepare(home, url, self.stdout.write):
                    self.stdout.write(line)
            else:
                require_own_installation(signs=True)
        except (OpsError, ForeignInstallation) as error:
            raise CommandError(str(error)) from error
        # It starts without a database, too, and answers as soon as there is one.
        except DatabaseError as error:
            self.stderr.write(f"The installation was not compared with the database: {error}")
        listener.set_inheritable(True)
        exec_command(web_argv(listener.fileno()))
