"""Follows a runner's stdout and stderr files and turns their lines into log events."""

import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

from jobs.contracts.events import Level, Log
from workers.supervise.lines import LineCutter
from workers.supervise.masking import Masker

LINE_CHARACTERS = 4000
CHUNK = 256 * 2**10
LINES_EACH_ATTEMPT = 100_000
TRUNCATE_ABOVE = 64 * 2**20
"""A file that was read up to its end and is larger starts anew, so no program fills the disk by talking."""

_ERROR = re.compile(r"^(?:E\d{4} |\[?ERROR\b|Traceback \(most recent|[A-Za-z_.]*(?:Error|Exception):|Fatal )")
_TERMINAL = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")  # colours and cursor movements
_WARNING = re.compile(r"^(?:W\d{4} |\[?WARN(?:ING)?\b|.*?\b\w*Warning: )")


class LogFile:
    """One of the two output files of a runner."""

    def __init__(self, path: Path, source: str, masker: Masker) -> None:
        self.source = source
        self._masker = masker
        # The runner appends: after a truncation it goes on at the new end.
        self.descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._position = 0
        self._cutter = LineCutter(4 * LINE_CHARACTERS)
        self._told = 0

    def begin(self) -> None:
        """Another attempt begins: drop what was said since the one before ended."""
        for _ in self.new_lines(last=True):
            pass
        self._told = 0

    def new_lines(self, *, last: bool = False) -> Iterator[Log]:
        """Yield what was written since; `last` also yields an unfinished line."""
        while chunk := os.pread(self.descriptor, CHUNK, self._position):
            self._position += len(chunk)
            yield from self._events(self._cutter.feed(chunk))
        if last:
            yield from self._events([self._cutter.rest()])
        if self._position > TRUNCATE_ABOVE:
            os.ftruncate(self.descriptor, 0)
            self._position = 0

    def close(self) -> None:
        """Give the file back."""
        os.close(self.descriptor)

    def _events(self, lines: list[bytes]) -> Iterator[Log]:
        for raw in lines:
            line = self._readable(raw)
            if not line:
                continue
            self._told += 1
            if self._told <= LINES_EACH_ATTEMPT:
                yield Log(time=time.time(), level=level_of(line), source=self.source, line=line)
            elif self._told == LINES_EACH_ATTEMPT + 1:
                text = f"{self.source}: more than {LINES_EACH_ATTEMPT} lines; the rest is not kept"
                yield Log(time=time.time(), level="warning", source="worker", line=text)

    def _readable(self, raw: bytes) -> str:
        text = _TERMINAL.sub("", raw.decode("utf-8", "replace")).rstrip()
        text = text.rsplit("\r", 1)[-1]  # of a progress bar, what a terminal would show in the end
        printable = "".join(c if c.isprintable() or c == "\t" else "�" for c in self._masker.mask(text))
        return printable[:LINE_CHARACTERS]


def level_of(line: str) -> Level:
    """Guess the level of a line that some library printed."""
    if _ERROR.match(line):
        return "error"
    return "warning" if _WARNING.match(line) else "info"
