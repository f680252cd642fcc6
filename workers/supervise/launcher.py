"""Defines how runner processes are started, and starts them as new interpreters."""

import asyncio
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

from workers.forking.client import Child

RUNNER = "workers.runner"
"""The module that a runner executes."""


class RunnerDescriptors(NamedTuple):
    """File descriptors of the runner's streams. The caller that opened them closes them."""

    stdin: int
    stdout: int
    stderr: int
    events: int


class Launcher(Protocol):
    """Starts a runner in its own session; the runner is killed when this process dies."""

    async def launch(
        self, folder: Path, environment: Mapping[str, str], descriptors: RunnerDescriptors
    ) -> Child:
        """Start a runner in `folder` with exactly this environment.

        Raises:
            OSError: it could not be started.
        """
        ...


@dataclass(frozen=True)
class SpawnLauncher:
    """Starts each runner as a new Python interpreter, which imports everything itself.

    Use it only from the event loop of the main thread: the kernel sends the parent-death signal when the
    *thread* that spawned the runner ends.
    """

    module: str = RUNNER

    async def launch(
        self, folder: Path, environment: Mapping[str, str], descriptors: RunnerDescriptors
    ) -> Child:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", self.module),
            *("--events-fd", str(descriptors.events), "--parent", str(os.getpid())),
            stdin=descriptors.stdin,
            stdout=descriptors.stdout,
            stderr=descriptors.stderr,
            env=environment,
            cwd=folder,
            pass_fds=(descriptors.events,),
            start_new_session=True,
        )
        return Child(process.pid, asyncio.create_task(process.wait(), name=f"end of {process.pid}"))
