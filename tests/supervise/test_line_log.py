"""A program's lines, beside a run, in the attempt's log."""

import errno
from typing import Any

from jobs.messages.events import Log
from workers.supervise.events.line_log import LineLog


class Recorder:
    def __init__(self) -> None:
        self.lines: list[str] = []

    def add(self, event: Log) -> None:
        assert event.source == "packages"
        if event.line == "full":
            raise OSError(errno.ENOSPC, "No space left on device")
        self.lines.append(event.line)


def test_a_program_that_prints_too_much_is_left_out_from_a_line_on() -> None:
    recorder: Any = Recorder()
    log = LineLog("packages", recorder, limit=3)
    for line in ("first", "full", "third", "fourth"):
        log.add(line)
    assert recorder.lines == ["first", "more than 3 lines; further ones are left out"]
