from argparse import ArgumentParser

from django.core.management.base import BaseCommand

from webapp.ops.parts import become, worker_argv


class Command(BaseCommand):
    help = "Becomes a worker: runs the jobs of one pool on this machine."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--pool", default="default", help="whose jobs it takes")
        parser.add_argument("--slots", type=int, help="jobs at once; by default its devices, else its cores")

    def handle(self, *, pool: str, slots: int | None, **_: object) -> None:
        become(worker_argv(pool, slots))
