"""The database's clock, where it is another machine's."""

import datetime as dt
from types import SimpleNamespace

import pytest

from jobs import clock

AHEAD = dt.timedelta(hours=1)


class RemoteClock:
    """A PostgreSQL whose clock is an hour ahead; counts how often it is read."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.reads, self.monotonic = 0, 1000.0
        monkeypatch.setattr(clock, "connection", SimpleNamespace(vendor="postgresql"))
        monkeypatch.setattr(clock, "now", self.read)
        monkeypatch.setattr(clock, "time", SimpleNamespace(monotonic=lambda: self.monotonic))
        monkeypatch.setattr(clock, "_offset", None)

    def read(self) -> dt.datetime:
        self.reads += 1
        return dt.datetime.now(dt.UTC) + AHEAD


def test_an_estimate_is_the_database_clock_to_within_milliseconds(monkeypatch: pytest.MonkeyPatch) -> None:
    RemoteClock(monkeypatch)
    for _ in range(3):
        assert abs(clock.estimate() - dt.datetime.now(dt.UTC) - AHEAD) < dt.timedelta(milliseconds=100)


def test_estimates_read_the_database_clock_once_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    remote = RemoteClock(monkeypatch)
    for _ in range(10):
        clock.estimate()
    assert remote.reads == 1
    remote.monotonic += clock.MEASURED_SECONDS + 1
    clock.estimate()
    assert remote.reads == 2
