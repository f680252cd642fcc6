"""What one node was asked for."""

import argparse
import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from workers.node.disk import least_free
from workers.supervise.forkserver import can_fork
from workers.supervise.launch import RUNNER
from workers.supervise.timing import Timing

MODULE_VARIABLE = "TRAINYARD_RUNNER_MODULE"
"""Tests put a runner here that imports nothing large, or one that dies on order."""
FORK_VARIABLE = "TRAINYARD_FORK_RUNNERS"
"""`0`: each runner imports everything itself, should a library not stand being forked."""


@dataclass(frozen=True)
class NodeSettings:
    """From the command line and the environment."""

    home: Path
    pool: str = "default"
    slots: int | None = None
    name: str | None = None
    timing: Timing = field(default_factory=Timing.from_environment)
    least_free: int = field(default_factory=least_free)
    runner: str = RUNNER
    forks: bool = False

    @property
    def host(self) -> str:
        """The machine's name."""
        return socket.gethostname()


def read_settings(arguments: Sequence[str] | None, home: Path) -> NodeSettings:
    """Read the command line; it exits with a usage message on a bad one."""
    parser = argparse.ArgumentParser(prog="workers.node", description="Runs the jobs of one pool here.")
    parser.add_argument("--pool", default="default", help="whose jobs it takes")
    parser.add_argument(
        "--slots", type=_positive, help="jobs at once; by default its devices, else its cores"
    )
    parser.add_argument("--name", help="how people know it; by default the host's name")
    options = parser.parse_args(arguments)
    return NodeSettings(
        home=home,
        pool=options.pool,
        slots=options.slots,
        name=options.name,
        runner=os.environ.get(MODULE_VARIABLE) or RUNNER,
        forks=can_fork() and os.environ.get(FORK_VARIABLE, "1") != "0",
    )


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a number of slots")
    return number
