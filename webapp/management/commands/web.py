from argparse import ArgumentParser

from django.conf import settings
from django.core.management.base import CommandError

from jobs import database_use, signing
from jobs.errors import DatabaseReplaced
from jobs.logs import absent_installation
from webapp.management.part_command import PartCommand
from webapp.ops import ports, static_files
from webapp.ops.errors import OpsError
from webapp.ops.home import Home
from webapp.ops.parts import exec_command, web_argv
from webapp.ops.preparation import prepare


class Command(PartCommand):
    help = "Runs only the web server, for installations on several machines; `up` runs everything on one."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
        parser.add_argument("--port", type=int, default=8000, help="port to listen on")
        parser.add_argument("--migrate", action="store_true", help="migrate the database first")

    def handle(self, *, host: str, port: int, migrate: bool, **_: object) -> None:
        try:
            listener = ports.listen(host, port, flag="--port")
            if not migrate and (sentence := absent_installation.problem("web")) is not None:
                raise CommandError(sentence)
            home = Home.from_environment()
            home.create()
        except OpsError as error:
            raise CommandError(str(error)) from error
        if migrate:
            url = ports.url(host, ports.port_of(listener))
            try:
                database_use.share(settings.DATABASES["default"], home.root)
                lines = prepare(home, url, self.stdout.write)
            except (OpsError, DatabaseReplaced) as error:
                raise CommandError(str(error)) from error
            # In JSON logs, the secrets of login links are masked: the command `adduser` prints a new link.
            for line in lines:
                self.stdout.write(line)
        elif (sentence := signing.missing_key()) is not None:
            raise CommandError(sentence)
        # Here rather than in the server, whose start a supervisor may limit.
        try:
            static_files.build()
        except OpsError as error:
            raise CommandError(str(error)) from error
        listener.set_inheritable(True)
        exec_command(web_argv(listener.fileno()))
