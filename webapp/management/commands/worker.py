from argparse import ArgumentParser

from django.core.management.base import BaseCommand

from jobs.monitoring.status import OPTION_HELP
from webapp.ops.parts import exec_command, worker_argv


class Command(BaseCommand):
    help = "Runs a worker, which runs the jobs of one pool on this machine."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--pool", default="default", help="the pool whose jobs it runs")
        parser.add_argument(
            "--slots",
            type=int,
            help="number of concurrent jobs; default: the number of devices, else of cores",
        )
        parser.add_argument(
            "--check",
            action="store_true",
            help="only print how runners are isolated, exit status 1 if they are not, and the sandboxes",
        )

        parser.add_argument("--status-address", metavar="HOST:PORT", help=OPTION_HELP)

    def handle(
        self, *, pool: str, slots: int | None, check: bool, status_address: str | None, **_: object
    ) -> None:
        status = () if status_address is None else ("--status-address", status_address)
        exec_command((*worker_argv(pool, slots, check=check), *status))
