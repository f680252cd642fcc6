"""Reads a node's settings from the command line and the environment."""

import argparse
import os
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from jobs.messages.sandbox import Level
from workers.confinement.forking.client import can_fork
from workers.confinement.isolation.users import UidRange
from workers.confinement.sandbox.levels import allowed_levels
from workers.node.disk import min_free_bytes
from workers.runner.environment import Environment
from workers.supervise.attempt.memory import in_memory_bytes
from workers.supervise.attempt.packages import build_limits
from workers.supervise.limits.limits import TaskLimits
from workers.supervise.limits.sandbox_limits import SandboxLimits
from workers.supervise.pool.launcher import RUNNER
from workers.supervise.timing import Timing
from workers.system import compile_cache

MODULE_VARIABLE = "TRAINYARD_RUNNER_MODULE"
"""Module to run as the runner. Tests set a fake runner, or one that dies at a given point."""
FORK_VARIABLE = "TRAINYARD_FORK_RUNNERS"
"""`0` starts each runner as a new interpreter, in case a library does not survive a fork."""
CHECKPOINT_VARIABLE = "TRAINYARD_CHECKPOINT_SECONDS"
"""The runner reads it."""
STANDBY_VARIABLE = "TRAINYARD_STANDBY"
"""Number of standby runners, each for another environment; `0` for none."""


@dataclass(frozen=True)
class NodeSettings:
    """A node's settings.

    Attributes:
        home: the installation's folder on this machine.
        pool: the pool whose jobs it runs.
        slots: how many attempts of one slot may run at the same time; None: one for each GPU, or else core.
        name: the worker's name; None: the host's, with a number if it is in use.
        timing: intervals and time limits.
        min_free_bytes: with less free disk space, no new work starts.
        runner: the module that runners execute.
        forks: whether runners are forked; otherwise each is a new interpreter.
        standbys: the maximum number of standby runners.
    """

    home: Path
    pool: str = "default"
    slots: int | None = None
    name: str | None = None
    timing: Timing = field(default_factory=Timing.from_environment)
    min_free_bytes: int = field(default_factory=min_free_bytes)
    runner: str = RUNNER
    forks: bool = False
    standbys: int = 0
    runner_uids: UidRange | None = None
    """The user ids of runners; None for the user of this process."""
    sandbox_levels: tuple[Level, ...] = tuple(Level)
    """The levels of sandbox that it tries."""
    check: bool = False
    """Only print how runners would be isolated."""
    status_address: str | None = None
    """The address of probes and metrics; None: that of the environment, if it has one."""

    @property
    def host(self) -> str:
        return socket.gethostname()


def read_settings(arguments: Sequence[str] | None, home: Path) -> NodeSettings:
    """Parse the command line; invalid arguments exit with a usage message."""
    parser = argparse.ArgumentParser(
        prog="workers.node", description="Runs the jobs of one pool on this machine."
    )
    parser.add_argument("--pool", default="default", help="the pool whose jobs it runs")
    parser.add_argument(
        "--slots",
        type=_positive,
        help="number of concurrent jobs; default: the number of devices, else of cores",
    )
    parser.add_argument("--name", help="name of the worker; default: the host name")
    parser.add_argument(
        "--check", action="store_true", help="only print how runners are isolated; 1 if they are not"
    )
    parser.add_argument("--status-address", metavar="HOST:PORT", help="address of probes and metrics")
    options = parser.parse_args(arguments)
    forks = can_fork() and os.environ.get(FORK_VARIABLE, "1") != "0"
    standbys = _count(parser, STANDBY_VARIABLE, 1)
    # Where JAX preallocates, a standby would take a whole GPU before there is a task for it.
    if not forks or not Environment.grows_on_demand(os.environ):
        standbys = 0
    try:
        uids = UidRange.read(os.environ)
        levels = allowed_levels()
        timing = Timing.from_environment()
        _check_variables(os.environ)
    except ValueError as error:
        parser.error(str(error))
    return NodeSettings(
        home=home,
        timing=timing,
        runner_uids=uids,
        sandbox_levels=levels,
        check=options.check,
        status_address=options.status_address,
        pool=options.pool,
        slots=options.slots,
        name=options.name,
        runner=os.environ.get(MODULE_VARIABLE) or RUNNER,
        forks=forks,
        standbys=standbys,
    )


def _check_variables(environment: Mapping[str, str]) -> None:
    """Check the variables that are read again where they are used: a wrong one would fail each run.

    Raises:
        ValueError: one is not valid.
    """
    compile_cache.limit_bytes(environment)
    in_memory_bytes(environment)
    build_limits(0, environment)
    TaskLimits.from_environment(environment)
    SandboxLimits.from_environment(environment)
    text = environment.get(CHECKPOINT_VARIABLE) or "1"
    try:
        is_valid = 0 <= float(text) < float("inf")
    except ValueError:
        is_valid = False
    if not is_valid:
        raise ValueError(f"{CHECKPOINT_VARIABLE}={text!r}: give a number of seconds, such as 1")


def _count(parser: argparse.ArgumentParser, variable: str, default: int) -> int:
    text = os.environ.get(variable) or str(default)
    if not text.isdecimal():
        parser.error(f"{variable}={text!r}: give a number of processes, 0 for none")
    return int(text)


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a number of slots")
    return number
