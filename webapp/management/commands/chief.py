from argparse import ArgumentParser
from pathlib import Path

from django.core.management.base import BaseCommand

from webapp.ops.parts import chief_argv, exec_command


class Command(BaseCommand):
    help = "Runs the chief of KerasTuner's distributed mode for external scripts; see --help."

    def run_from_argv(self, argv: list[str]) -> None:
        # Not `handle`: the chief parses its own command line, whose options Django's parser would refuse.
        parser = ArgumentParser(add_help=False, allow_abbrev=False)
        # Resolved: the chief runs in the program's folder.
        parser.add_argument("--space", type=Path)
        options, others = parser.parse_known_args(argv[2:])
        space = () if options.space is None else ("--space", str(options.space.resolve()))
        exec_command(chief_argv([*others, *space]))
