import sys

from django.core.management.base import BaseCommand

from webapp.ops.parts import become, chief_argv


class Command(BaseCommand):
    help = (
        "Becomes the chief of KerasTuner's distributed mode for scripts outside Trainyard; --help says more."
    )

    def run_from_argv(self, argv: list[str]) -> None:
        sys.stdout.flush()
        become(chief_argv(argv[2:]))  # which reads its own command line
