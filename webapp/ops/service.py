"""A part that is kept alive: started again when it dies, more slowly when it dies at once."""

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from webapp.ops.console import Console
from webapp.ops.process import Process, in_words


@dataclass
class Backoff:
    """How long to wait before the next start; it forgets past failures after a healthy run."""

    first: float = 0.2
    limit: float = 15.0
    healthy_after: float = 10.0
    failures: int = 0

    def after(self, lived: float) -> float:
        """Return the seconds to wait after a run of `lived` seconds."""
        self.failures = 1 if lived >= self.healthy_after else self.failures + 1
        return min(self.limit, self.first * 2.0 ** (self.failures - 1))


@dataclass(frozen=True)
class Part:
    """What to run and how long it may take to end."""

    name: str
    argv: tuple[str, ...]
    grace: float = 10.0
    inherit: tuple[int, ...] = ()
    before_start: Callable[[int], None] | None = None  # gets the number of failures in a row


@dataclass
class Service:
    """Keeps one `Part` running until `stop` or `kill`."""

    part: Part
    environment: Mapping[str, str]
    console: Console
    cwd: Path | None = None
    backoff: Backoff = field(default_factory=Backoff)
    process: Process | None = None
    _stopping: asyncio.Event = field(default_factory=asyncio.Event)
    _keeping: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to keep it running."""
        self._keeping = asyncio.create_task(self._keep(), name=self.part.name)

    @property
    def failing(self) -> int:
        """How often in a row it died soon after its start."""
        return self.backoff.failures

    @property
    def pid(self) -> int | None:
        """The pid of the running process."""
        return self.process.pid if self.process and self.process.running else None

    async def stop(self) -> None:
        """Ask it to end, give it its grace, then end it."""
        self._stopping.set()
        if self.process:
            self.process.terminate()
        if self._keeping is None:
            return
        done, _ = await asyncio.wait({self._keeping}, timeout=self.part.grace)
        if not done:
            self.console.say(f"{self.part.name} did not end within {self.part.grace:.0f} s; killing it.")
            self.kill()
            await self._keeping

    def kill(self) -> None:
        """End it now and for good."""
        self._stopping.set()
        if self.process:
            self.process.kill()

    async def _keep(self) -> None:
        while not self._stopping.is_set():
            try:
                process = await self._start_once()
            except OSError as error:  # no memory, no process slots, no program
                await self._pause(0.0, f"could not be started ({error})")
                continue
            status = await process.wait()
            if not self._stopping.is_set():
                await self._pause(process.age, in_words(status))

    async def _start_once(self) -> Process:
        if self.part.before_start:
            self.part.before_start(self.backoff.failures)
        self.process = await Process.start(
            self.part.argv,
            environment=self.environment,
            cwd=self.cwd,
            inherit=self.part.inherit,
            on_line=lambda line: self.console.line(self.part.name, line),
        )
        if self._stopping.is_set():  # the stop came while we forked
            self.process.terminate()
        return self.process

    async def _pause(self, lived: float, what: str) -> None:
        delay = self.backoff.after(lived)
        self.console.say(f"{self.part.name} {what}; starting it again in {delay:.1f} s.", trouble=True)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._stopping.wait(), delay)
