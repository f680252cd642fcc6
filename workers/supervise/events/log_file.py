"""Reads a runner's stdout and stderr files and turns their lines into log events."""

import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

from jobs.messages.events import Level, Log
from jobs.messages.trial_marker import trial_of
from workers.system.line_splitter import LineSplitter
from workers.system.secret_masking import SecretMasker

MAX_LINE_CHARACTERS = 4000
CHUNK_BYTES = 256 * 2**10
MAX_LINES_PER_ATTEMPT = 100_000
# A larger file is truncated once it has been read, so that a verbose program cannot fill the disk.
TRUNCATE_ABOVE = 64 * 2**20
MOST_UNREAD = 16 * 2**20
"""Of more bytes since the last read, the first are left out: a program can print, or extend the file of its
output, much faster than the node reads it for all runs."""

_ERROR = re.compile(r"^(?:E\d{4} |\[?ERROR\b|Traceback \(most recent|[A-Za-z_.]*(?:Error|Exception):|Fatal )")
_TERMINAL = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")  # colours and cursor movements
_WARNING = re.compile(r"^(?:W\d{4} |\[?WARN(?:ING)?\b|.*?\b\w*Warning: )")


class LogFile:
    """Follows one output file of a runner, which has two."""

    def __init__(self, path: Path, source: str, masker: SecretMasker) -> None:
        self.source = source
        self._masker = masker
        # Opened for appending: after a truncation the runner continues at the new end.
        self.descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._position = 0
        # A character has at most four bytes in UTF-8. Lines are cut to characters after secrets are masked.
        self._splitter = LineSplitter(4 * MAX_LINE_CHARACTERS)
        self._lines_emitted = 0
        self._trial: int | None = None
        # Bytes that truncations have removed from the file, and bytes that earlier attempts have printed.
        self._removed_bytes = 0
        self._earlier_bytes = 0

    @property
    def printed(self) -> int:
        """How many bytes the current attempt has printed."""
        return self._removed_bytes + os.fstat(self.descriptor).st_size - self._earlier_bytes

    def start_attempt(self) -> None:
        """Discard lines printed since the previous attempt, and reset the line limit."""
        # Threads that the previous task left running may have printed these lines.
        for _ in self.new_lines(last=True):
            pass
        self._lines_emitted = 0
        self._trial = None
        self._earlier_bytes += self.printed

    def new_lines(self, *, last: bool = False) -> Iterator[Log]:
        """Yield the lines written since the last call; `last` also yields an unfinished line."""
        # Not further than the current end: a program could print faster than it is read.
        end = os.fstat(self.descriptor).st_size
        if (skipped := end - self._position - MOST_UNREAD) > 0:
            self._splitter.rest()
            self._position += skipped
            text = f"{self.source}: {skipped:,} bytes were printed too fast and are left out here"
            yield self._log("warning", "worker", text)
        while chunk := os.pread(
            self.descriptor, min(CHUNK_BYTES, max(0, end - self._position)), self._position
        ):
            self._position += len(chunk)
            yield from self._events(self._splitter.feed(chunk))
        if last:
            yield from self._events([self._splitter.rest()])
        # Lines that are written between the last read and this call are lost.
        if self._position > TRUNCATE_ABOVE:
            os.ftruncate(self.descriptor, 0)
            self._removed_bytes += self._position
            self._position = 0

    def tail(self, size: int = 2000) -> str:
        """Return the last characters that were printed, without secrets."""
        start = max(0, os.fstat(self.descriptor).st_size - size)
        return self._masker.mask(os.pread(self.descriptor, size, start).decode("utf-8", "replace"))

    def close(self) -> None:
        os.close(self.descriptor)

    def _events(self, lines: list[bytes]) -> Iterator[Log]:
        for raw in lines:
            if (trial := trial_of(raw)) is not None:
                self._trial = trial
                continue
            line = self._readable(raw)
            if not line:
                continue
            self._lines_emitted += 1
            if self._lines_emitted <= MAX_LINES_PER_ATTEMPT:
                yield self._log(level_of(line), self.source, line)
            elif self._lines_emitted == MAX_LINES_PER_ATTEMPT + 1:
                text = f"{self.source}: more than {MAX_LINES_PER_ATTEMPT} lines; further lines are dropped"
                yield self._log("warning", "worker", text)

    def _log(self, level: Level, source: str, line: str) -> Log:
        return Log(time=time.time(), trial=self._trial, level=level, source=source, line=line)

    def _readable(self, raw: bytes) -> str:
        text = _TERMINAL.sub("", raw.decode("utf-8", "replace")).rstrip()
        # A progress bar writes its states one over another: keep the last one.
        text = text.rsplit("\r", 1)[-1]
        # Secrets first: cutting one would leave a part that no pattern matches.
        text = self._masker.mask(text)[:MAX_LINE_CHARACTERS]
        return "".join(c if c.isprintable() or c == "\t" else "�" for c in text)


def level_of(line: str) -> Level:
    """Guess the log level for a line that a library printed."""
    if _ERROR.match(line):
        return "error"
    return "warning" if _WARNING.match(line) else "info"
