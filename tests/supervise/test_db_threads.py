"""Database calls that may hang or find the database away."""

import asyncio
import socket
import sqlite3
import threading
from pathlib import Path
from unittest.mock import Mock

import pytest
from django.db import OperationalError

from workers.node import hints
from workers.node.db_threads import Lane
from workers.node.disk import shortage
from workers.supervise.ledger import LedgerAway
from workers.supervise.stall_detector import Silence
from workers.supervise.timing import Timing


async def test_a_locked_database_is_an_absent_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def locked() -> None:
        raise OperationalError("database is locked")

    connection = Mock()
    monkeypatch.setattr("workers.node.db_threads.connection", connection)
    with pytest.raises(LedgerAway, match="locked"):
        await Lane("test").call(locked)
    connection.close.assert_called_once()  # the next call opens a new one


async def test_other_errors_are_not_hidden() -> None:
    def broken() -> None:
        raise sqlite3.ProgrammingError("no such column")

    with pytest.raises(sqlite3.ProgrammingError):
        await Lane("test").call(broken)


async def test_a_call_that_hangs_is_left_behind_and_the_lane_goes_on() -> None:
    lane, gate = Lane("test"), threading.Event()
    with pytest.raises(LedgerAway, match="within"):
        await lane.call(gate.wait, patience=0.05)
    assert await lane.call(lambda: "next") == "next"
    gate.set()


async def test_hints_arrive_and_nonsense_does_no_harm(tmp_path: Path) -> None:
    heard: asyncio.Queue[hints.Hint] = asyncio.Queue()
    path = tmp_path / "hints.sock"
    transport = await hints.listen(path, heard.put_nowait)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as stranger:
        stranger.sendto(b"\xff nonsense", str(path))
        stranger.sendto(b"[1]", str(path))
    hints.send(str(path), hints.Hint("wake", 5))
    assert await asyncio.wait_for(heard.get(), 5) == hints.Hint("wake", 5)
    transport.close()
    hints.send(str(path), hints.Hint("wake", 6))  # nobody listens any more


def test_a_nearly_full_disk_is_told_in_a_sentence(tmp_path: Path) -> None:
    assert shortage([tmp_path], 0) is None
    assert "free" in (shortage([tmp_path], 2**60) or "")


def test_silence_is_measured_against_the_runs_own_pace(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("workers.supervise.stall_detector.time.monotonic", lambda: now[0])
    silence = Silence(Timing(silence=60, silence_factor=10, first_progress=300))
    now[0] = 299
    assert not silence.too_long
    silence.broken()
    for _ in range(5):
        now[0] += 20
        silence.broken()
    now[0] += 199
    assert not silence.too_long
    now[0] += 2
    assert silence.too_long


def test_timing_comes_from_the_environment() -> None:
    timing = Timing.from_environment({"TRAINYARD_NODE_LEASE": "1.5", "TRAINYARD_NODE_RENEW": ""})
    assert timing.lease == 1.5
    assert timing.renew == Timing().renew
    with pytest.raises(ValueError, match="soon"):
        Timing.from_environment({"TRAINYARD_NODE_LEASE": "soon"})
