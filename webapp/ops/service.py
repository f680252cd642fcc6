"""Keeps a part running: restarts it when it dies, with backoff."""

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from webapp.ops.console import Console
from webapp.ops.part_process import PartProcess, describe_exit


@dataclass
class RestartBackoff:
    """Computes the delay before a restart: exponential, and reset after a healthy run."""

    first: float = 0.2
    limit: float = 15.0
    healthy_after: float = 10.0
    failures: int = 0

    def delay_after(self, uptime: float) -> float:
        """Return the seconds to wait after a run that lasted `uptime` seconds."""
        self.failures = 1 if uptime >= self.healthy_after else self.failures + 1
        return min(self.limit, self.first * 2.0 ** (self.failures - 1))


@dataclass(frozen=True)
class Part:
    """An installation's component: its command line and how long it may take to end."""

    name: str
    argv: tuple[str, ...]
    grace: float = 10.0
    inherit: tuple[int, ...] = ()
    # The unix socket and the address for health checks; a part without them is replaced only when it ends.
    health: tuple[Path, str] | None = None
    before_start: Callable[[int], None] | None = None  # called with the number of consecutive failures


@dataclass
class Service:
    """Keeps one `Part` running until `stop` or `kill`."""

    part: Part
    environment: Mapping[str, str]
    console: Console
    cwd: Path | None = None
    backoff: RestartBackoff = field(default_factory=RestartBackoff)
    process: PartProcess | None = None
    _stopping: asyncio.Event = field(default_factory=asyncio.Event)
    _task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start to keep the part running."""
        self._task = asyncio.create_task(self._run(), name=self.part.name)

    @property
    def failures(self) -> int:
        """Consecutive runs that ended soon after their start."""
        return self.backoff.failures

    @property
    def pid(self) -> int | None:
        return self.process.pid if self.process and self.process.running else None

    async def stop(self) -> None:
        """Send SIGTERM, and kill it after its grace period."""
        self._stopping.set()
        if self.process:
            self.process.terminate()
        if self._task is None:
            return
        done, _ = await asyncio.wait({self._task}, timeout=self.part.grace)
        if not done:
            self.console.message(f"{self.part.name} did not end within {self.part.grace:.0f} s; killing it.")
            self.kill()
            await self._task

    def kill(self) -> None:
        """Kill it without a restart."""
        self._stopping.set()
        if self.process:
            self.process.kill()

    async def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                process = await self._start_once()
            except OSError as error:
                # No memory, no process slots, or the program is missing: all of these may pass.
                await self._pause(0.0, f"could not be started ({error})")
                continue
            status = await process.wait()
            if not self._stopping.is_set():
                await self._pause(process.age, describe_exit(status))

    async def _start_once(self) -> PartProcess:
        if self.part.before_start:
            self.part.before_start(self.backoff.failures)
        self.process = await PartProcess.start(
            self.part.argv,
            environment=self.environment,
            cwd=self.cwd,
            inherit=self.part.inherit,
            on_line=lambda line: self.console.line(self.part.name, line),
        )
        # `stop` was called during the start, when it could not signal this process yet.
        if self._stopping.is_set():
            self.process.terminate()
        return self.process

    async def _pause(self, uptime: float, event: str) -> None:
        delay = self.backoff.delay_after(uptime)
        self.console.message(f"{self.part.name} {event}; restarting it in {delay:.1f} s.", error=True)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._stopping.wait(), delay)
