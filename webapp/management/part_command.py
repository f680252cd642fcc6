"""The base of the commands that run a part: their errors are lines of its log."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from jobs.logs.start_errors import USAGE_STATUS, end_with, writes_json


class PartCommand(BaseCommand):
    """Ends with one sentence. In JSON logs, it is one line with the level of errors, and has no usage."""

    # Each part runs them; here they would only cost time.
    requires_system_checks: list[str] = []

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        """Return the parser. In JSON logs it raises its errors."""
        parser = super().create_parser(prog_name, subcommand, **kwargs)
        if writes_json():
            parser.called_from_command_line = False
        return parser

    def run_from_argv(self, argv: list[str]) -> None:
        """Run the command of the program's arguments."""
        try:
            super().run_from_argv(argv)
        # Of the parser: those of `handle` do not come here.
        except CommandError as error:
            if not writes_json():
                raise
            end_with(f"{str(error).removeprefix('Error: ')}; --help lists the options", USAGE_STATUS)

    def execute(self, *args: Any, **options: Any) -> str | None:
        """Run the command."""
        try:
            return super().execute(*args, **options)
        except CommandError as error:
            # Django would write it with the level of other output.
            if not writes_json():
                raise
            end_with(str(error), error.returncode)
