"""What one node was asked for."""

import argparse
import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from workers.node.disk import least_free
from workers.runner.environment import Environment
from workers.supervise.forkserver import can_fork
from workers.supervise.launch import RUNNER
from workers.supervise.timing import Timing

MODULE_VARIABLE = "TRAINYARD_RUNNER_MODULE"
"""Tests put a runner here that imports nothing large, or one that dies on order."""
FORK_VARIABLE = "TRAINYARD_FORK_RUNNERS"
"""`0`: each runner imports everything itself, should a library not stand being forked."""


STANDBY_VARIABLE = "TRAINYARD_STANDBY"
"""How many runners are kept warm ahead of need, for as many environments; `0` for none."""


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
    standbys: int = 0

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
    forks = can_fork() and os.environ.get(FORK_VARIABLE, "1") != "0"
    return NodeSettings(
        home=home,
        pool=options.pool,
        slots=options.slots,
        name=options.name,
        runner=os.environ.get(MODULE_VARIABLE) or RUNNER,
        forks=forks,
        standbys=_standbys() if forks else 0,
    )


def _standbys() -> int:
    """Return how many runners are kept warm: none where JAX was told to take a whole GPU when it starts."""
    if not Environment.grows_on_demand(os.environ):
        return 0
    return int(os.environ.get(STANDBY_VARIABLE) or 1)


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a number of slots")
    return number
