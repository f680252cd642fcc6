"""Replaces a part that runs but does not answer.

It asks over a unix socket, which has room when all connections of the part's port are taken.
"""

import asyncio
import contextlib
import os
import signal
from pathlib import Path

from webapp.ops.console import Console
from webapp.ops.part_process import PartProcess
from webapp.ops.service import Service

# Seconds.
PATIENCE = 10.0
PAUSE = 1.0
TICK = 0.5
# The time to write its stacks to the log.
STACKS_WAIT = 0.5
# After a replacement, the next one takes twice the patience, at most 16 times, until it has answered so long.
MOST_DOUBLINGS = 4
RECOVERY = 600.0


class Watchdog:
    """Watches one part: `run` it as a task.

    Only a process that has answered once is watched: a start may take long. Silence is counted in ticks of
    this process that are on time. So a machine that was paused, or is too busy to run this process on time,
    replaces nothing.

    Args:
        service: runs the part.
        socket: the part's unix socket.
        path: the address to ask for; every response counts as an answer.
        console: for the reason behind a replacement.
        patience: how many silent seconds pass before the part is replaced.
        tick: seconds.
    """

    def __init__(
        self,
        service: Service,
        socket: Path,
        path: str,
        console: Console,
        *,
        patience: float = PATIENCE,
        tick: float = TICK,
    ) -> None:
        self._service, self._socket, self._path, self._console = service, socket, path, console
        self._patience, self._tick = patience, tick
        self._doublings = 0

    async def run(self) -> None:
        """Watch each process that runs the part, until cancelled."""
        while True:
            process = self._service.process
            if process is not None and process.running:
                await self._watch(process)
            await asyncio.sleep(self._tick)

    async def _watch(self, process: PartProcess) -> None:
        """Return when the process has ended; kill it if it does not answer."""
        has_answered, silence = False, 0.0
        asking: asyncio.Task[bool] | None = None
        try:
            while process.running:
                asking = asking or asyncio.create_task(self._ask())
                on_time = await self._wait(asking)
                if asking.done() and asking.result():
                    asking, has_answered, silence = None, True, 0.0
                    self._forgive(process)
                    await asyncio.sleep(PAUSE)
                    continue
                if asking.done():
                    asking = None
                    on_time &= await self._wait(None)
                if has_answered and on_time:
                    silence += self._tick
                if silence >= self._patience * 2**self._doublings:
                    await self._replace(process, silence)
                    return
        finally:
            if asking is not None:
                asking.cancel()

    async def _wait(self, asking: "asyncio.Task[bool] | None") -> bool:
        """Wait for one tick, or until an answer. Return whether this process was woken up on time."""
        loop = asyncio.get_running_loop()
        begin = loop.time()
        if asking is None:
            await asyncio.sleep(self._tick)
        else:
            await asyncio.wait({asking}, timeout=self._tick)
        return loop.time() - begin < 2 * self._tick

    async def _ask(self) -> bool:
        """Return whether the part responds."""
        writer = None
        try:
            reader, writer = await asyncio.open_unix_connection(self._socket)
            request = f"GET {self._path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
            writer.write(request.encode())
            return (await reader.readline()).startswith(b"HTTP/1.1 ")
        except (OSError, ValueError):
            return False
        finally:
            if writer is not None:
                writer.close()

    def _forgive(self, process: PartProcess) -> None:
        if process.age > RECOVERY:
            self._doublings = 0

    async def _replace(self, process: PartProcess, silence: float) -> None:
        self._doublings = min(self._doublings + 1, MOST_DOUBLINGS)
        name = self._service.part.name
        self._console.message(f"{name} did not answer for {silence:.0f} s; replacing it.", error=True)
        # The server writes the stacks of its threads to its log.
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGUSR2)
        await asyncio.sleep(STACKS_WAIT)
        process.kill()
