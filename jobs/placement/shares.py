"""Orders waiting work within a priority by how much each person has used lately.

A person's use is the slot-seconds of their runs in a pool. It halves every `HALF_LIFE`, so that yesterday's
use counts half. The person who has used less is next. A person who holds nothing and has waited for
`PATIENCE` is next in any case, the longest waiting first.
"""

import heapq
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from jobs.placement.state import Person, Work

HALF_LIFE = 24 * 3600.0
"""Seconds in which use halves."""
LEAST_SECONDS = 60.0
"""A slot counts as used for a minute as soon as it is given out, so that short runs alternate too."""
PATIENCE = 24 * 3600.0
"""Seconds after which a person who holds no slot comes before all shares."""

type Lane = tuple[str, Person]
"""A person in a pool."""


def decay(seconds: float) -> float:
    """Return which part of a use counts that many seconds later."""
    return float(2.0 ** -(max(seconds, 0.0) / HALF_LIFE))


def use_of_run(slots: int, begun: float, ended: float, now: float) -> float:
    """Return the decayed slot-seconds of a run, all times in seconds.

    Args:
        slots: how many slots it held.
        begun: its start.
        ended: its end; `now` if it runs.
        now: the time at which the use counts.
    """
    # The integral of slots · decay(now - t) over the run, so that a long run does not age all at once.
    scale = HALF_LIFE / math.log(2.0)
    return slots * scale * max(decay(now - ended) - decay(now - begun), 0.0)


def use_while_running(slots: int, begun: float, now: float) -> float:
    """Return the slot-seconds of a run that holds its slots: at least a minute for each."""
    return max(use_of_run(slots, begun, now, now), slots * LEAST_SECONDS)


class Turns:
    """Yields waiting work in the order in which it is placed.

    Within a person, the order is priority, then age. After work that gets slots, or waits for them, call
    `charge`: the person's next work then counts that use.
    """

    def __init__(
        self,
        waiting: Sequence[Work],
        used: Mapping[Lane, float],
        holding: Mapping[Lane, int],
        now: float,
    ) -> None:
        self._used = defaultdict(float, used)
        self._holding = defaultdict(int, holding)
        self._now = now
        by_priority: dict[int, list[Work]] = defaultdict(list)
        for work in waiting:
            by_priority[work.priority].append(work)
        self._by_priority = by_priority

    def __iter__(self) -> Iterator[Work]:
        """Yield each work once, the highest priority first."""
        for priority in sorted(self._by_priority, reverse=True):
            yield from self._of_priority(self._by_priority[priority])

    def charge(self, work: Work) -> None:
        """Count work that gets slots, or waits for them, as a use of its person."""
        lane = (work.pool, work.person)
        self._used[lane] += work.slots * LEAST_SECONDS
        self._holding[lane] += work.slots

    def _of_priority(self, waiting: list[Work]) -> Iterator[Work]:
        lanes: dict[Lane, list[Work]] = defaultdict(list)
        for work in waiting:
            lanes[work.pool, work.person].append(work)
        for works in lanes.values():
            # The oldest is the last, which `pop` removes.
            works.sort(key=_age, reverse=True)
        # The number decides between equal keys, since lanes cannot be compared.
        entries = [
            (self._key(lane, works[-1]), number, lane) for number, (lane, works) in enumerate(lanes.items())
        ]
        heapq.heapify(entries)
        while entries:
            _, number, lane = heapq.heappop(entries)
            works = lanes[lane]
            yield works.pop()
            if works:
                heapq.heappush(entries, (self._key(lane, works[-1]), number, lane))

    def _key(self, lane: Lane, work: Work) -> tuple[float, ...]:
        """Return the sort key of a lane, whose next work is `work`."""
        if not self._holding[lane] and self._now - work.queued >= PATIENCE:
            return (0.0, *_age(work))
        return (1.0, self._used[lane], *_age(work))


def _age(work: Work) -> tuple[float, ...]:
    return (work.queued, work.job, work.number)
