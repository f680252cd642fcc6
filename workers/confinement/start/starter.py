"""Starts processes with user code, by the sandbox levels that this machine offers."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial

from jobs.messages.sandbox import Level, LevelState, choose_level, refusal
from workers.confinement.forking.client import ForkServer
from workers.confinement.forking.sandbox_forks import SandboxForks
from workers.confinement.sandbox.launch import SandboxRefused, Starter, spawn
from workers.confinement.start.process import CodeProcess, ProcessStart, start_process
from workers.confinement.start.threads import call_in_thread


@dataclass(kw_only=True)
class CodeStarter:
    """Starts processes with user code.

    Attributes:
        states: gets this machine's levels once they are found.
    """

    states: "asyncio.Future[tuple[LevelState, ...]]" = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )
    # A sandbox that is not forked ends with the thread that started it, so it needs one that lives as long as
    # this program.
    _thread: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(1, "sandboxes"), init=False
    )

    async def require(self, minimum: Level) -> Level:
        """Return the level for a process with this minimum.

        Raises:
            SandboxRefused: the machine has none.
        """
        states = await asyncio.shield(self.states)
        level = choose_level(states, minimum)
        if level is None:
            raise SandboxRefused(refusal(states, minimum))
        return level

    async def start(
        self, start: ProcessStart, discard: Callable[[CodeProcess], object] = CodeProcess.close
    ) -> CodeProcess:
        """Start a process.

        Args:
            start: the process.
            discard: ends it, if this is cancelled meanwhile.

        Raises:
            SandboxRefused: no level is strong enough.
            OSError: it could not be started.
        """
        states = await asyncio.shield(self.states)
        return await call_in_thread(partial(start_process, start, states), discard, self._thread)

    async def close(self) -> None:
        """End the thread. All processes must have ended."""
        self.states.cancel()
        await asyncio.to_thread(self._thread.shutdown)


def starter_for(server: ForkServer | None, timeout: float | None = None) -> Starter:
    """Return what starts processes in sandboxes. Call it in the event loop.

    Args:
        server: forks them; None for new interpreters.
        timeout: the seconds after which a fork server that does not answer is replaced by a new interpreter.
    """
    return spawn if server is None else SandboxForks(server, timeout)
