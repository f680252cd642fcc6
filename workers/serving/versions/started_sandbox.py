"""A started model child with code of users: its output, and what has to be removed when it ends."""

import asyncio
import logging
import subprocess
import threading
from collections import deque
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import NamedTuple

from workers.confinement.environments.folder import Held
from workers.confinement.sandbox.process import SandboxProcess
from workers.confinement.sandbox.watch import Watch
from workers.model_process.errors import plain_text
from workers.serving.versions.child_folder import ChildFolder
from workers.serving.versions.orphans import Orphans

logger = logging.getLogger("trainyard.serving")
code_logger = logging.getLogger("trainyard.serving.code")
MAX_LINE = 1000
EARLY_LOOKS, EARLY_LOOK_SECONDS, LOOK_SECONDS = 80, 0.25, 2.0
"""The times between two looks for the processes inside a sandbox, which an early end could leave behind."""
UNKNOWN_STATUS = 1


class Lines:
    """Logs the lines that a child prints, and keeps the last one."""

    def __init__(self, name: str) -> None:
        self._name, self._rest = name, b""
        self._lines: deque[str] = deque(maxlen=1)

    def receive(self, chunk: bytes) -> None:
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        # A line without an end must not be kept for ever.
        if len(self._rest) > MAX_LINE:
            lines, self._rest = [*lines, self._rest], b""
        for line in lines:
            text = plain_text(line.decode(errors="replace"), limit=MAX_LINE)
            if text.strip():
                self._lines.append(text)
                code_logger.info("%s: %s", self._name, text)

    def last(self) -> str:
        return self._rest.decode(errors="replace").strip() or (self._lines[0] if self._lines else "")


class StartedSandbox(NamedTuple):
    """A started child, and its files.

    Attributes:
        process: its processes.
        watch: measures them.
        lines: its output.
        files: its folder and its user.
        model: its model file.
        packages: keeps the packages of its code; None if it has none.
        orphans: its processes that an early end could leave behind.
    """

    process: SandboxProcess
    watch: Watch
    lines: Lines
    files: ChildFolder
    model: Path
    packages: Held | None
    orphans: Orphans

    def follow(self, loop: asyncio.AbstractEventLoop) -> "asyncio.Future[int]":
        """Wait for the end in a thread, and remove everything. Return the exit status that it will have."""
        ended: asyncio.Future[int] = loop.create_future()

        def wait() -> None:
            status = UNKNOWN_STATUS
            try:
                status = self._remove()
            except Exception:
                logger.exception("a part of the sandbox of process %d could not be removed", self.process.pid)
            finally:
                # Its version waits for it. The server may have ended meanwhile.
                with suppress(RuntimeError):
                    loop.call_soon_threadsafe(ended.set_result, status)

        threading.Thread(target=wait, name=f"end of {self.process.pid}", daemon=True).start()
        return ended

    def end(self) -> None:
        """End it, and wait until it has ended."""
        self.orphans.look()
        self.process.kill()

    def abandon(self) -> None:
        """End it and remove everything."""
        self.end()
        self._remove()

    def _remove(self) -> int:
        """Wait for the end, and remove the rest. Each step is done also if another one fails."""
        with self.orphans, ExitStack() as steps:
            if self.packages is not None:
                steps.callback(self.packages.release)
            steps.callback(self.files.close)
            steps.callback(self.process.close)
            return self._wait()

    def _wait(self) -> int:
        early = EARLY_LOOKS
        while True:
            self.orphans.look()
            try:
                return self.watch.wait(EARLY_LOOK_SECONDS if early else LOOK_SECONDS)
            except subprocess.TimeoutExpired:
                early = max(0, early - 1)
