"""Defines how runner processes are started, and starts them as new interpreters."""

import asyncio
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

from jobs.messages.fork import Confinement
from workers.confinement.forking.client import Child

RUNNER = "workers.runner"
"""The module that a runner executes."""
MODEL = "workers.serving.child"
"""The module that executes a model in a sandbox. The prediction server runs the same one."""


class RunnerDescriptors(NamedTuple):
    """The file descriptors for a runner's streams. The caller that opened them closes them.

    Attributes:
        stdin, stdout, stderr, events: the descriptors.
        printed: returns how many bytes its current task has printed.
    """

    stdin: int
    stdout: int
    stderr: int
    events: int
    printed: Callable[[], int] = int


class RunnerStart(NamedTuple):
    """How a runner is started: its working folder, its entire environment, and the user it becomes."""

    folder: Path
    environment: Mapping[str, str]
    confinement: Confinement | None = None


class Launcher(Protocol):
    """Starts a runner in its own session; the runner is killed when this process dies."""

    async def launch(self, start: RunnerStart, descriptors: RunnerDescriptors) -> Child:
        """Start a runner.

        Raises:
            OSError: it could not be started.
        """
        ...


@dataclass(frozen=True)
class SpawnLauncher:
    """Starts each runner as a new Python interpreter, which imports everything itself.

    Use it only in the main thread's event loop: the kernel sends the parent-death signal when the
    *thread* that spawned the runner ends.
    """

    module: str = RUNNER

    async def launch(self, start: RunnerStart, descriptors: RunnerDescriptors) -> Child:
        confined = start.confinement
        wrapper = (
            ()
            if confined is None
            else ("workers.confinement.isolation.run_confined", confined.model_dump_json())
        )
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", *wrapper, self.module),
            *("--events-fd", str(descriptors.events), "--parent", str(os.getpid())),
            stdin=descriptors.stdin,
            stdout=descriptors.stdout,
            stderr=descriptors.stderr,
            env=start.environment,
            cwd=start.folder,
            pass_fds=(descriptors.events,),
            start_new_session=True,
        )
        return Child(process.pid, asyncio.create_task(process.wait(), name=f"end of {process.pid}"))
