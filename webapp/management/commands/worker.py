from argparse import ArgumentParser

from jobs.worker_options import add_worker_options, labels_of
from webapp.management.part_command import PartCommand
from webapp.ops.parts import exec_command, worker_argv


class Command(PartCommand):
    help = "Runs a worker, which runs the jobs of one pool on this machine."

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_worker_options(parser)
        self._parser = parser

    def handle(
        self,
        *,
        name: str | None,
        pool: str,
        label: list[tuple[str, str]],
        slots: int | None,
        idle_exit: float | None,
        max_life: float | None,
        status_address: str | None,
        check: bool,
        **_: object,
    ) -> None:
        labels = labels_of(self._parser, label)
        options = {
            "--name": name,
            "--idle-exit": seconds(idle_exit),
            "--max-life": seconds(max_life),
            "--status-address": status_address,
        }
        exec_command(worker_argv(pool, slots, labels=labels, options=options, check=check))


def seconds(duration: float | None) -> str | None:
    """Return a duration as the worker reads it."""
    return None if duration is None else f"{duration:.0f}s"
