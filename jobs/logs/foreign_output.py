"""Turns the output of libraries, child processes and the interpreter into JSON lines.

XLA, a broker, a fork server or a crashed interpreter write text to standard error. A program that reads the
log of a part gets one JSON object for each line of it.
"""

import atexit
import contextlib
import io
import json
import logging
import os
import re
import select
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import TextIO

from jobs.logs.lines import MAX_VALUE, wants_json
from jobs.logs.masking import mask

# The sentences with which Valkey and Redis end; their mark "#" is also that of messages without any harm.
_BROKER_END = r"^\d+:\w .* # (?:Fatal|Failed|Could not|Can't|Cannot|Unable|Bad |Error|Unrecoverable)"
_LEVELS = (
    (
        "error",
        re.compile(rf"\b(?:ERROR|CRITICAL|FATAL|Traceback)|Error:|: error:|^[EF]\d{{4}} |{_BROKER_END}"),
    ),
    ("warning", re.compile(r"\bWARN(?:ING)?\b|Warning:|^W\d{4} ")),
)
_MAX_LINE = 64 * 2**10
# A terminal or program that reads nothing must not keep a part from its end.
_DRAIN_SECONDS = 5.0


def json_line(text: str, part: str) -> str:
    """Return a line of a part's output as JSON. One that is JSON already only gets the part's name."""
    if text.startswith("{"):
        with contextlib.suppress(ValueError):
            fields = json.loads(text)
            if isinstance(fields, dict) and "event" in fields:
                return json.dumps({**fields, "part": part}, ensure_ascii=False)
    return message_line(text, next((name for name, words in _LEVELS if words.search(text)), "info"), part)


def message_line(text: str, level: str, part: str, logger: str = "output") -> str:
    """Return a message as a JSON line, without secrets."""
    shown = mask(text)
    if len(shown) > MAX_VALUE:
        shown = f"{shown[:MAX_VALUE]}… ({len(shown):,} characters)"
    now = datetime.now(UTC).isoformat().replace("+00:00", "Z")
    fields = {"event": shown, "level": level, "logger": logger, "timestamp": now, "part": part}
    return json.dumps(fields, ensure_ascii=False)


class JsonLines(io.TextIOBase):
    """A text stream that writes each line to another one as JSON."""

    def __init__(self, stream: TextIO, part: str) -> None:
        self._stream, self._part = stream, part
        self._rest = ""

    def writable(self) -> bool:
        """Return that it can be written."""
        return True

    def fileno(self) -> int:
        """Return the descriptor of the other stream."""
        return self._stream.fileno()

    def write(self, text: str) -> int:
        """Write the lines that are complete."""
        *lines, self._rest = (self._rest + text).split("\n")
        for line in lines:
            if line.strip():
                self._stream.write(f"{json_line(line, self._part)}\n")
        return len(text)

    def write_error(self, text: str) -> None:
        """Write a message of any number of lines as one error."""
        self.finish()
        self._stream.write(f"{message_line(text, 'error', self._part, logger=self._part)}\n")
        self.flush()

    def flush(self) -> None:
        """Flush the other stream. A line that is incomplete waits for its end."""
        self._stream.flush()

    def end_line(self) -> None:
        """Write the last line, if it has no end."""
        if self._rest:
            self.write("\n")

    def finish(self) -> None:
        """Write the last line, and flush the other stream."""
        self.end_line()
        self.flush()


def speak_json(part: str, *, also_output: bool = False) -> None:
    """Write messages on standard error as JSON lines, if the log is JSON.

    A program that this one executes is not concerned, since its descriptors stay the same.

    Args:
        part: the name of the part.
        also_output: whether messages on standard output are lines of the log too.
    """
    if not wants_json(os.environ) or isinstance(sys.stderr, JsonLines):
        return
    sys.stderr = JsonLines(sys.stderr, part)
    if also_output:
        sys.stdout = JsonLines(sys.stdout, part)


def capture(part: str) -> TextIO | None:
    """Read all that this process and its children write to standard output and error, if the log is JSON.

    Own log lines go to the former standard error directly, so they are neither read again nor lost when the
    process ends. The thread that reads waits for output and has nothing to do without any.

    Returns:
        The former standard error, for stacks of a process that hangs; None if nothing is captured.
    """
    if not wants_json(os.environ):
        return None
    end_capture()
    _finish_streams()
    former = os.fdopen(os.dup(2), "w", encoding="utf-8", errors="backslashreplace", buffering=1)
    capturing.append(_Capture(former, part))
    sys.stderr = JsonLines(former, part)
    for handler in logging.getLogger().handlers:
        if isinstance(handler, logging.StreamHandler) and not isinstance(handler, logging.FileHandler):
            handler.setStream(former)
    return former


def end_capture() -> None:
    """Write the rest of the captured output, and capture no more.

    A normal end of the interpreter calls it. A process that ends otherwise calls it before: its last sentence
    may be in the pipe, and the thread that reads the pipe dies with the process.
    """
    while capturing:
        capturing.pop().close()


class _Capture:
    """The pipe in the place of standard output and error, and the thread that reads it."""

    def __init__(self, former: TextIO, part: str) -> None:
        self._former, self._process = former, os.getpid()
        reading, writing = os.pipe()
        stop, self._stopping = os.pipe()
        os.dup2(writing, 1)
        os.dup2(writing, 2)
        os.close(writing)
        self._thread = threading.Thread(
            target=forward_lines, args=(reading, former.write, part, stop), name="foreign-output", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Write the rest. Children may hold the pipe longer, so the thread does not wait for its end."""
        # The thread is not in a forked child, whose output still goes to the parent.
        if os.getpid() != self._process:
            return
        _finish_streams()
        os.dup2(self._former.fileno(), 1)
        os.dup2(self._former.fileno(), 2)
        os.write(self._stopping, b"\0")
        self._thread.join(_DRAIN_SECONDS)


capturing: list[_Capture] = []
"""The capture of this process, if it has one."""
atexit.register(end_capture)


def _finish_streams() -> None:
    # The former standard error has a buffer of one line. To flush it waits for the thread that writes to it,
    # without a bound if nothing reads what that thread writes.
    for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
        with contextlib.suppress(OSError, ValueError):
            if isinstance(stream, JsonLines):
                stream.end_line()
            elif stream is not None:
                stream.flush()


def forward_lines(reading: int, write: Callable[[str], object], part: str, stop: int | None = None) -> None:
    """Write each line of a pipe as JSON, until its end.

    Args:
        reading: the pipe.
        write: writes a line.
        part: the name of the part.
        stop: a pipe; after a byte in it, only the present content of `reading` is written.
    """
    rest = b""
    for chunk in _chunks(reading, stop):
        *lines, rest = (rest + chunk).split(b"\n")
        if len(rest) >= _MAX_LINE:
            lines, rest = [*lines, rest], b""
        for line in lines:
            _write_line(line, write, part)
    _write_line(rest, write, part)


def _chunks(reading: int, stop: int | None) -> Iterator[bytes]:
    """Yield the pipe's content until its end; after a byte in `stop`, until it is empty."""
    ready = select.poll()
    ready.register(reading, select.POLLIN)
    if stop is not None:
        ready.register(stop, select.POLLIN)
    while any(descriptor == reading for descriptor, _ in ready.poll()):
        if not (chunk := os.read(reading, _MAX_LINE)):
            return
        yield chunk


def _write_line(line: bytes, write: Callable[[str], object], part: str) -> None:
    if text := line.decode("utf-8", "replace").strip():
        # A reader that is gone must not end the thread: writers would then wait for room in the pipe.
        with contextlib.suppress(OSError, ValueError):
            write(f"{json_line(text, part)}\n")
