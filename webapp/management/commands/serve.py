from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError

from webapp.management.part_command import PartCommand
from webapp.ops.errors import OpsError
from webapp.ops.home import Home
from webapp.ops.parts import ServingOptions, exec_command, serving_argv


class Command(PartCommand):
    help = "Runs a prediction server, which serves the releases of the dashboard."

    def add_arguments(self, parser: ArgumentParser) -> None:
        home = Home.from_environment()
        parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
        parser.add_argument("--port", type=int, default=8501, help="port to listen on; 0 chooses a free one")
        parser.add_argument("--dashboard", default="http://127.0.0.1:8000", help="URL of the dashboard")
        parser.add_argument(
            "--token-file",
            type=Path,
            default=home.serving_token_file,
            help="file with this server's credential, see the command serving-token",
        )
        parser.add_argument(
            "--public-key-file",
            type=Path,
            default=home.release_key_file,
            help="file with the public key of release signatures",
        )

    def handle(self, **options: Any) -> None:
        home = Home.from_environment()
        key_file = options["public_key_file"].resolve()
        if not home.root.exists() and not key_file.exists():
            raise CommandError(
                f"There is no prediction server: the home {home.root} does not exist, and there is no file "
                f"{key_file} with the key of releases. Correct TRAINYARD_HOME, or copy release.pub from the "
                "home of the dashboard and name it with --public-key-file."
            )
        try:
            home.create()
        except OpsError as error:
            raise CommandError(str(error)) from error
        serving_options = ServingOptions(
            host=options["host"],
            port=options["port"],
            dashboard=options["dashboard"],
            artifacts=settings.TRAINYARD_ARTIFACTS,
            token_file=options["token_file"].resolve(),
            public_key_file=key_file,
        )
        exec_command(serving_argv(home, serving_options))
