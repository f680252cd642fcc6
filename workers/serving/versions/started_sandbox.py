"""A started model child with user code, and what has to be removed when it ends."""

import asyncio
import logging
import subprocess
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from jobs.logged_errors import log_errors
from workers.confinement.start.files import ProcessFiles
from workers.confinement.start.output import OutputLines
from workers.confinement.start.process import CodeProcess
from workers.confinement.start.threads import follow_in_thread
from workers.model_process.errors import plain_text
from workers.serving.versions.orphans import Orphans

logger = logging.getLogger("trainyard.serving")
code_logger = logging.getLogger("trainyard.serving.code")
MAX_LINE_CHARACTERS = 1000
EARLY_LOOKS, EARLY_LOOK_SECONDS, LOOK_SECONDS = 80, 0.25, 2.0
"""The times between two looks for the processes inside a sandbox, which an early end could leave behind."""
UNKNOWN_STATUS = 1


def log_lines(version: str) -> OutputLines:
    """Return a child's output, whose lines are logged in the thread that reads them."""
    return OutputLines(partial(_log_line, version), limit=4 * MAX_LINE_CHARACTERS)


def _log_line(version: str, line: str) -> None:
    if text := plain_text(line, limit=MAX_LINE_CHARACTERS):
        code_logger.info("%s: %s", version, text)


@dataclass
class StartedSandbox(CodeProcess):
    """A started child, and its files.

    Attributes:
        files: its files, which are closed at its end.
        model: its model file.
        orphans: its processes that an early end could leave behind.
    """

    files: ProcessFiles
    model: Path
    orphans: Orphans

    def follow(self) -> "asyncio.Future[int]":
        """Wait for the end in a thread, and remove everything. Return the exit status that it will have."""
        return follow_in_thread(f"end of {self.process.pid}", self._remove, self._status)

    def end(self) -> None:
        """End it, and wait until it has ended."""
        self.orphans.look()
        self.process.kill()

    def abandon(self) -> None:
        """End a child that nothing follows. Its files stay."""
        with self.orphans:
            self.end()
            self.close()

    def _status(self) -> int:
        status = self.process.returncode
        return UNKNOWN_STATUS if status is None else status

    def _remove(self) -> None:
        """Wait for the end, and remove the rest. Each step is done also if another one fails."""
        pid = self.process.pid
        with (
            log_errors(logger, "a part of the sandbox of process %d could not be removed", pid),
            self.orphans,
            ExitStack() as steps,
        ):
            steps.callback(self.files.close)
            steps.callback(self.close)
            self._wait()

    def _wait(self) -> None:
        early = EARLY_LOOKS
        while True:
            self.orphans.look()
            try:
                self.watch.wait(EARLY_LOOK_SECONDS if early else LOOK_SECONDS)
                return
            except subprocess.TimeoutExpired:
                early = max(0, early - 1)
