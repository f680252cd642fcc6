"""Leaves out lines from a runner's output that exceed its project's event quota."""

import time
from collections import deque
from collections.abc import Iterable, Iterator

from jobs.messages.event_cost import MESSAGE_COST
from jobs.messages.events import Log
from workers.supervise.events.event_pace import EventPace

LAST_LINES = 20
"""The last lines of each read are always kept: they may be the error that ended the run."""


def within_quota(lines: Iterable[Log], pace: EventPace) -> Iterator[Log]:
    """Yield lines as long as there is room for them, and the last ones.

    A warning has the number of lines that are left out between them.
    """
    left_out = 0
    last: deque[Log] = deque(maxlen=LAST_LINES)
    for line in lines:
        # Once a line was held back, the others wait behind it, so that their order is kept.
        if not last and pace.has_room_for_message():
            pace.spend(MESSAGE_COST)
            yield line
            continue
        left_out += len(last) == LAST_LINES
        last.append(line)
    if left_out:
        yield _warning(left_out, last[0].source)
    yield from last


def _warning(count: int, source: str) -> Log:
    lines = f"{count:,} lines" if count > 1 else "1 line"
    text = f"{source}: {lines} left out here; the quota of events a second of the project was reached"
    return Log(time=time.time(), level="warning", source="worker", line=text)
