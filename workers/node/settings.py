"""Reads a node's settings from the command line and the environment."""

import argparse
import os
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from jobs.logs.start_errors import PartParser
from jobs.messages.sandbox import Level
from jobs.messages.worker_end import seconds_to_end
from jobs.worker_options import add_worker_options, labels_of
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
        labels: jobs may ask for them.
        idle_exit: after so many seconds without work it ends; None: never.
        max_life: it has ended so many seconds after its start; None: no limit.
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
    labels: dict[str, str] = field(default_factory=dict)
    idle_exit: float | None = None
    max_life: float | None = None
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
    parser = PartParser(prog="workers.node", description="Runs the jobs of one pool on this machine.")
    add_worker_options(parser)
    options = parser.parse_args(arguments)
    try:
        timing = Timing.from_environment()
    except ValueError as error:
        parser.error(str(error))
    shortest = 2 * seconds_to_end(timing.grace, timing.upload_grace)
    if options.max_life is not None and options.max_life < shortest:
        parser.error(
            f"argument --max-life: {options.max_life:.0f}s is too short, since runs get up to "
            f"{timing.grace:.0f}s to write their checkpoints and {timing.upload_grace:.0f}s to copy them; "
            f"give {shortest:.0f}s or more"
        )
    forks = can_fork() and os.environ.get(FORK_VARIABLE, "1") != "0"
    standbys = _count(parser, STANDBY_VARIABLE, 1)
    # Where JAX preallocates, a standby would take a whole GPU before there is a task for it.
    if not forks or not Environment.grows_on_demand(os.environ):
        standbys = 0
    try:
        uids = UidRange.read(os.environ)
        levels = allowed_levels()
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
        labels=labels_of(parser, options.label),
        idle_exit=options.idle_exit,
        max_life=options.max_life,
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
