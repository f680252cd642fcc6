"""Counts requests and batches by version, and keeps the counts until the dashboard has confirmed them."""

import time
from collections import defaultdict
from pathlib import Path

from jobs.messages.traffic import (
    INTERVAL_SECONDS,
    MAX_INTERVALS,
    Tally,
    TrafficInterval,
    TrafficReport,
    VersionCounts,
)

KEPT_INTERVALS = 360
"""Intervals with requests that are kept while the dashboard is down: an hour of constant traffic."""


class Traffic:
    """The counts for all versions on this server.

    Requests and batches are counted in place, without a lock or a clock: everything runs in one event loop.
    """

    def __init__(self, run: int) -> None:
        self._run = run
        self._since = time.time()
        self._current: defaultdict[tuple[str, int], Tally] = defaultdict(Tally)
        self._unconfirmed: dict[str, UnconfirmedCounts] = {}

    def tally(self, model: str, version: int) -> Tally:
        """Return a version's current counts. They are replaced when the interval ends."""
        return self._current[model, version]

    def close_interval(self, now: float) -> None:
        """Move the counts since the last call to the ten-second interval with most of that time."""
        middle = (self._since + now) / 2
        start = int(middle // INTERVAL_SECONDS) * INTERVAL_SECONDS
        self._since = now
        closed, self._current = self._current, defaultdict(Tally)
        for (model, version), tally in closed.items():
            self._unconfirmed.setdefault(model, UnconfirmedCounts()).add(start, version, tally)

    def report(self, model: str) -> TrafficReport | None:
        """Return a model's oldest counts that are not confirmed; None if there are none."""
        counts = self._unconfirmed.get(model)
        return counts.report(self._run, time.time()) if counts else None

    def confirm(self, model: str) -> bool:
        """Discard the counts in a model's last report; return whether there are more to report."""
        counts = self._unconfirmed.get(model)
        return counts is not None and counts.confirm()


class UnconfirmedCounts:
    """One model's counts that the dashboard has not confirmed.

    A report is sent unchanged until it is confirmed: its answer may have been lost, and the dashboard
    recognizes it by its sequence number.
    """

    def __init__(self) -> None:
        self._closed: dict[int, dict[int, Tally]] = {}
        self._sent: tuple[TrafficInterval, ...] = ()
        self._sequence = 0

    def add(self, start: int, version: int, tally: Tally) -> None:
        """Add a version's counts in an interval; the oldest intervals are lost if there are too many."""
        self._closed.setdefault(start, {}).setdefault(version, Tally()).add(tally)
        while len(self._closed) > KEPT_INTERVALS:
            del self._closed[next(iter(self._closed))]

    def report(self, run: int, now: float) -> TrafficReport | None:
        """Return the report to send; None if there is nothing to report."""
        if not self._sent and self._closed:
            self._sent = tuple(self._take(start) for start in list(self._closed)[:MAX_INTERVALS])
            self._sequence += 1
        if not self._sent:
            return None
        return TrafficReport(run=run, sequence=self._sequence, sent=now, intervals=self._sent)

    def confirm(self) -> bool:
        """Discard the report that was sent; return whether there is more to report."""
        self._sent = ()
        return bool(self._closed)

    def _take(self, start: int) -> TrafficInterval:
        versions = self._closed.pop(start)
        counts = (VersionCounts(version=number, counts=tally.counts()) for number, tally in versions.items())
        return TrafficInterval(start=start, versions=tuple(counts))


def next_run(path: Path) -> int:
    """Return a number that is greater at each server start, also after its clock was set back."""
    try:
        earlier = int(path.read_text())
    except (FileNotFoundError, ValueError):
        earlier = 0
    run = max(earlier + 1, int(time.time()))
    temporary = path.with_suffix(".new")
    temporary.write_text(str(run))
    temporary.replace(path)
    return run
