"""Writes every part's output, prefixed with its name, to the terminal and to rotated log files."""

import contextlib
import logging
import os
import re
import sys
from datetime import datetime
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import TextIO

from jobs.logs.foreign_output import json_line, message_line
from jobs.logs.lines import wants_json

COLOURS = (36, 35, 33, 32, 34, 96, 95, 93)  # cyan, magenta, yellow, green, blue and their bright forms
RED, BOLD = 31, 1
NAME_WIDTH = 10
BYTES_PER_FILE = 10 * 2**20
MAX_OLD_FILES = 5
INFORMATION = re.compile(r'\[info *\]| INFO |"level": ?"info"')
"""Marks a line below the level of warnings in the formats of all parts, except of the broker."""


class Console:
    """Writes prefixed lines, or JSON lines. A lost terminal or a full disk never stops the supervisor."""

    def __init__(self, folder: Path, stream: TextIO | None = None, *, as_json: bool | None = None) -> None:
        self._as_json = wants_json(os.environ) if as_json is None else as_json
        self._folder = folder
        self._stream = stream or sys.stdout
        self._coloured = not self._as_json and self._stream.isatty() and "NO_COLOR" not in os.environ
        self._files: dict[str, _LogFile] = {}
        self._colours: dict[str, int] = {}
        self.is_starting = False
        """Whether the terminal omits the ordinary lines of the parts."""

    def line(self, name: str, text: str) -> None:
        """Write one output line from the part `name`."""
        if self._as_json:
            if not text.strip():
                return
            text = json_line(text, name)
        self._file(name).write(text)
        # A broker writes advice about the machine; if it does not start, its log is named.
        if self.is_starting and (name == "broker" or INFORMATION.search(text)):
            return
        self._show(name, text)

    def ready(self, name: str, text: str) -> None:
        """Write that the part `name` is ready."""
        if self._as_json:
            self.message(f"{name}: {text}")
            return
        self._file("up").write(f"{name}: {text}")
        self._show(name, text)

    def _show(self, name: str, text: str) -> None:
        colour = self._colours.setdefault(name, COLOURS[len(self._colours) % len(COLOURS)])
        # Control characters of a part's output could rewrite or reconfigure the operator's terminal.
        printable = "".join(c if c.isprintable() or c == "\t" else "\N{REPLACEMENT CHARACTER}" for c in text)
        self._print(name, colour, printable)

    def message(self, text: str, *, error: bool = False) -> None:
        """Write a message from the supervisor."""
        if self._as_json:
            text = self._own_line(text, "error" if error else "info")
        self._file("up").write(text)
        self._print("up", RED if error else BOLD, text)

    def terminal_message(self, text: str) -> None:
        """Write a message to the terminal only: secrets such as login links must not be in log files."""
        if self._as_json and not self._stream.isatty():
            # Standard output is a log file of another program: the line has no secret.
            text = self._own_line(f"{text} (logs have no links: the command `adduser` prints one)", "info")
        self._print("up", BOLD, text)

    def _own_line(self, text: str, level: str) -> str:
        return message_line(text, level, "up")

    def close(self) -> None:
        for file in self._files.values():
            file.close()

    def _file(self, name: str) -> "_LogFile":
        if name not in self._files:
            self._files[name] = _LogFile(self._folder / f"{name}.log", is_dated=not self._as_json)
        return self._files[name]

    def _print(self, name: str, colour: int, text: str) -> None:
        clock = datetime.now().astimezone().strftime("%H:%M:%S")
        if self._as_json:
            with contextlib.suppress(OSError, ValueError):
                print(text, file=self._stream, flush=True)
            return
        label = name.ljust(NAME_WIDTH)
        if self._coloured:
            label = f"\x1b[{colour}m{label}\x1b[0m"
        # The terminal may be closed; the log files still get the lines.
        with contextlib.suppress(OSError, ValueError):
            print(f"{clock} {label} | {text}", file=self._stream, flush=True)


class _LogFile:
    """A log file that is rotated at 10 MiB, keeping five older files."""

    def __init__(self, path: Path, *, is_dated: bool = True) -> None:
        self._handler = _QuietHandler(
            path,
            maxBytes=BYTES_PER_FILE,
            backupCount=MAX_OLD_FILES,
            encoding="utf-8",
            errors="replace",
            delay=True,
        )
        self._handler.setFormatter(
            logging.Formatter("%(asctime)s %(message)s" if is_dated else "%(message)s")
        )

    def write(self, text: str) -> None:
        self._handler.emit(logging.LogRecord("up", logging.INFO, "", 0, text, None, None))

    def close(self) -> None:
        self._handler.close()


class _QuietHandler(RotatingFileHandler):
    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - name defined by logging
        """Drop the line: on a full disk the parts continue, and the terminal still shows it."""
