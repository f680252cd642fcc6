"""How a runner's process comes to be: by executing Python anew, or by a fork of one that has its imports."""

import asyncio
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

RUNNER = "workers.runner"
"""The module that a runner runs."""


class Ends(NamedTuple):
    """The runner's ends of its streams, as descriptors; whoever opened them closes them."""

    stdin: int
    stdout: int
    stderr: int
    events: int


@dataclass(frozen=True)
class Child:
    """A process that runs; `ended` gives its exit status (negative: the signal) once it is gone."""

    pid: int
    ended: "asyncio.Future[int]"


class Launcher(Protocol):
    """Starts a runner in a session of its own, that dies with this process."""

    async def launch(self, folder: Path, environment: Mapping[str, str], ends: Ends) -> Child:
        """Start it in `folder`, with this environment and nothing of ours.

        Raises:
            OSError: it could not be started.
        """
        ...


@dataclass(frozen=True)
class Execute:
    """A new interpreter for each runner: nothing is shared, and everything is imported anew.

    Use it from the event loop of the main thread: the runner asks the kernel to die with its parent, and the
    kernel fires when the *thread* that spawned it ends.
    """

    module: str = RUNNER

    async def launch(self, folder: Path, environment: Mapping[str, str], ends: Ends) -> Child:
        """See `Launcher`."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", self.module),
            *("--events-fd", str(ends.events), "--parent", str(os.getpid())),
            stdin=ends.stdin,
            stdout=ends.stdout,
            stderr=ends.stderr,
            env=environment,
            cwd=folder,
            pass_fds=(ends.events,),
            start_new_session=True,
        )
        return Child(process.pid, asyncio.create_task(process.wait(), name=f"end of {process.pid}"))
