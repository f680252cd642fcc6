import os
import subprocess
import sys
import tempfile
from argparse import ArgumentParser
from typing import NoReturn

from jobs import program
from jobs.logs import absent_installation
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
        argv = worker_argv(pool, slots, labels=labels, options=options, check=check)
        if check and absent_installation.problem("worker") is not None:
            _check_machine(argv)
        exec_command(argv)


def _check_machine(argv: tuple[str, ...]) -> NoReturn:
    """Check a machine on which no installation is. Its home is made elsewhere, and removed at the end."""
    with tempfile.TemporaryDirectory(prefix="trainyard-check-") as folder:
        environment = {**os.environ, "TRAINYARD_HOME": folder}
        environment.pop(program.WITHOUT_FILES_VARIABLE, None)
        status = subprocess.run(argv, cwd=program.ROOT, env=environment, check=False).returncode  # noqa: S603
    sys.exit(status)


def seconds(duration: float | None) -> str | None:
    """Return a duration as the worker reads it."""
    return None if duration is None else f"{duration:.0f}s"
