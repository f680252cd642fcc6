"""Database calls that hang or find the database unavailable, and other small parts in the node."""

import asyncio
import socket
import sqlite3
import threading
from pathlib import Path
from unittest.mock import Mock

import pytest
from django.db import OperationalError

from tests.supervise.conftest import until
from workers.node import hints
from workers.node.db_threads import DatabaseThread, abandoned_calls
from workers.node.disk import disk_shortage
from workers.supervise.attempt_repository import DatabaseUnavailable
from workers.supervise.limits.stall_detector import StallDetector
from workers.supervise.timing import Timing


async def test_a_locked_database_counts_as_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    def locked() -> None:
        raise OperationalError("database is locked")

    connection = Mock()
    monkeypatch.setattr("workers.node.db_threads.connection", connection)
    with pytest.raises(DatabaseUnavailable, match="locked"):
        await DatabaseThread("test").call(locked)
    connection.close.assert_called_once()  # the next call opens a new one


async def test_other_errors_are_not_hidden() -> None:
    def broken() -> None:
        raise sqlite3.ProgrammingError("no such column")

    with pytest.raises(sqlite3.ProgrammingError):
        await DatabaseThread("test").call(broken)


async def test_a_hanging_call_is_abandoned_and_later_calls_run() -> None:
    database, gate = DatabaseThread("test"), threading.Event()
    with pytest.raises(DatabaseUnavailable, match="within"):
        await database.call(gate.wait, timeout=0.05)
    assert await database.call(lambda: "next") == "next"
    gate.set()
    await until(lambda: abandoned_calls() == 0)
    database.close()


async def test_the_connection_of_an_abandoned_call_is_closed_when_the_call_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    closed_in: list[str] = []
    connection, gate = Mock(), threading.Event()
    connection.close.side_effect = lambda: closed_in.append(threading.current_thread().name)
    monkeypatch.setattr("workers.node.db_threads.connection", connection)
    database = DatabaseThread("abandoned")
    calls = [database.call(gate.wait, timeout=0.05) for _ in range(3)]
    refused = await asyncio.gather(*calls, return_exceptions=True)
    assert all(isinstance(error, DatabaseUnavailable) for error in refused)
    assert abandoned_calls() == 1, "the calls behind it were in the same thread"
    gate.set()
    await until(lambda: abandoned_calls() == 0)
    # Threads of other tests may end at the same time.
    assert [name for name in closed_in if name.startswith("abandoned")] == ["abandoned_0"]
    database.close()


async def test_calls_that_never_end_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workers.node.db_threads.MAX_ABANDONED", 2)
    database, gate = DatabaseThread("test"), threading.Event()
    for _ in range(2):
        with pytest.raises(DatabaseUnavailable, match="within"):
            await database.call(gate.wait, timeout=0.05)
    with pytest.raises(DatabaseUnavailable, match="2 earlier calls still wait"):
        await database.call(lambda: "next")
    gate.set()
    await until(lambda: abandoned_calls() == 0)
    assert await database.call(lambda: "next") == "next"
    database.close()


async def test_a_closed_thread_closes_its_connection_and_the_next_call_starts_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    connection = Mock()
    monkeypatch.setattr("workers.node.db_threads.connection", connection)
    database = DatabaseThread("test")
    first = await database.call(threading.current_thread)
    database.close()
    await until(lambda: connection.close.called)
    assert await database.call(threading.current_thread) is not first
    database.close()


async def test_hints_arrive_and_invalid_datagrams_are_ignored(tmp_path: Path) -> None:
    received: asyncio.Queue[hints.Hint] = asyncio.Queue()
    path = tmp_path / "hints.sock"
    transport = await hints.listen(path, received.put_nowait)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as stranger:
        stranger.sendto(b"\xff nonsense", str(path))
        stranger.sendto(b"[1]", str(path))
    hints.send(str(path), hints.Hint("wake", 5))
    assert await asyncio.wait_for(received.get(), 5) == hints.Hint("wake", 5)
    transport.close()
    hints.send(str(path), hints.Hint("wake", 6))  # no listener any more


def test_a_nearly_full_disk_is_reported_in_a_sentence(tmp_path: Path) -> None:
    assert disk_shortage([tmp_path], 0) is None
    assert "free" in (disk_shortage([tmp_path], 2**60) or "")


def test_a_stall_is_measured_against_the_runs_own_speed(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("workers.supervise.limits.stall_detector.time.monotonic", lambda: now[0])
    detector = StallDetector(Timing(silence=60, silence_factor=10, first_progress=300))
    now[0] = 299
    assert not detector.stalled
    detector.progress_made()
    for _ in range(5):
        now[0] += 20
        detector.progress_made()
    now[0] += 199
    assert not detector.stalled
    now[0] += 2
    assert detector.stalled


def test_a_phase_without_progress_has_a_limit_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("workers.supervise.limits.stall_detector.time.monotonic", lambda: now[0])
    detector = StallDetector(Timing(silence=60, silence_factor=10, phase=300))
    detector.progress_made()
    now[0] += 10
    detector.phase_began()

    def is_stalled() -> bool:
        return detector.stalled

    now[0] += 299
    assert not is_stalled()
    now[0] += 2
    assert is_stalled(), "compiling and timing are bounded"
    detector.phase_began()
    assert not is_stalled(), "the next phase counts from its own start"
    detector.progress_made()
    detector.progress_made()
    now[0] += 10 * 311 + 1
    assert detector.stalled


def test_a_run_is_not_stalled_before_twice_its_longest_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("workers.supervise.limits.stall_detector.time.monotonic", lambda: now[0])
    detector = StallDetector(Timing(silence=60, silence_factor=10, epoch_factor=2))
    detector.progress_made()
    for _ in range(3):
        for _ in range(100):  # steps of a second are reported
            now[0] += 1
            detector.progress_made()
        now[0] += 100
        detector.progress_made()
        detector.epoch_ended()
    now[0] += 399
    assert not detector.stalled
    now[0] += 2
    assert detector.stalled


def test_timing_comes_from_the_environment() -> None:
    timing = Timing.from_environment({"TRAINYARD_NODE_WATCH": "1.5", "TRAINYARD_NODE_RENEW": ""})
    assert timing.watch == 1.5
    assert timing.renew == Timing().renew
    with pytest.raises(ValueError, match="soon"):
        Timing.from_environment({"TRAINYARD_NODE_WATCH": "soon"})


def test_a_worker_cannot_expect_another_lease_than_the_server_gives() -> None:
    with pytest.raises(ValueError, match="TRAINYARD_NODE_LEASE cannot be set"):
        Timing.from_environment({"TRAINYARD_NODE_LEASE": "60"})
