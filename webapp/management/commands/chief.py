import sys

from django.core.management.base import BaseCommand

from webapp.ops.parts import chief_argv, exec_command


class Command(BaseCommand):
    help = "Runs the chief of KerasTuner's distributed mode for external scripts; see --help."

    def run_from_argv(self, argv: list[str]) -> None:
        sys.stdout.flush()
        exec_command(chief_argv(argv[2:]))  # the chief parses its own command line
