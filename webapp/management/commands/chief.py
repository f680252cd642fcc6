from django.core.management.base import BaseCommand

from webapp.ops.parts import chief_argv, exec_command


class Command(BaseCommand):
    help = "Runs the chief of KerasTuner's distributed mode for external scripts; see --help."

    def run_from_argv(self, argv: list[str]) -> None:
        # Not `handle`: the chief parses its own command line, whose options Django's parser would refuse.
        exec_command(chief_argv(argv[2:]))
