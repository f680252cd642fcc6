"""Processes that need the same program at once: the first compiles it, and the others read it."""

import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.engine.compiled.test_aot import ROWS, called
from tests.present import present
from workers.engine.compiled import compile_lock

HOLD = """
import fcntl, sys, time
file = open(sys.argv[1], "w")
fcntl.flock(file, fcntl.LOCK_EX)
print("locked", flush=True)
time.sleep(600)
"""


@contextmanager
def locked_by_another_process(file: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Hold a lock in another process, as a runner that compiles does."""
    with subprocess.Popen([sys.executable, "-S", "-c", HOLD, file], stdout=subprocess.PIPE) as process:
        try:
            present(process.stdout).readline()
            yield process
        finally:
            process.kill()


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compile_lock, "_gave_up", False)


def program_files(cache: Path) -> list[str]:
    return sorted(file.name for file in cache.iterdir())


def test_of_two_that_need_a_program_at_once_one_compiles_it(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from workers.engine.compiled import aot

    compiling, may_store = threading.Event(), threading.Event()
    serialize = aot._serialize

    def serialize_later(compiled: Any) -> Any:
        compiling.set()
        assert may_store.wait(60)
        return serialize(compiled)

    monkeypatch.setattr(aot, "_serialize", serialize_later)
    traced = []
    first, second = (threading.Thread(target=lambda: traced.append(called("steps", ROWS))) for _ in range(2))
    waits = threading.Event()
    monkeypatch.setattr(time, "sleep", lambda _seconds: waits.set())
    first.start()
    assert compiling.wait(60)
    second.start()
    assert waits.wait(60), "the second one does not wait"
    may_store.set()
    first.join()
    second.join()
    assert sorted(traced) == [False, True]
    assert len(program_files(cache)) == 1, "the lock's file is left"


def test_a_process_that_waits_goes_on_when_the_first_one_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "lock"
    with locked_by_another_process(file) as holder:
        # The first pause of the process that waits is the moment of the kill.
        monkeypatch.setattr(time, "sleep", lambda _seconds: holder.kill())
        with compile_lock.first(file) as is_first:
            assert not is_first
        with compile_lock.first(file) as is_first:
            assert is_first


def test_a_process_that_waited_in_vain_compiles_and_never_waits_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(compile_lock, "WAIT_SECONDS", 0.0)
    file = tmp_path / "lock"
    with locked_by_another_process(file) as holder:
        holder.send_signal(signal.SIGSTOP)
        with caplog.at_level(logging.WARNING), compile_lock.first(file) as is_first:
            assert not is_first
        assert "waited 0 s" in caplog.text
        monkeypatch.setattr(compile_lock, "_wait", None)
        with compile_lock.first(file) as is_first:
            assert is_first


@pytest.mark.parametrize("what", ["link", "folder", "fifo"])
def test_without_a_usable_lock_each_process_compiles(
    cache: Path, monkeypatch: pytest.MonkeyPatch, what: str, tmp_path: Path
) -> None:
    other = tmp_path / "a file of someone else"
    file = tmp_path / "lock"
    if what == "link":
        file.symlink_to(other)
    elif what == "fifo":
        os.mkfifo(file)
    else:
        file.mkdir()
    with compile_lock.first(file) as is_first:
        assert is_first
    assert not other.exists()
    assert compile_lock.open_lock(file) is None
    assert os.path.lexists(file), "a file that is no lock is deleted"
    assert called("steps", np.zeros(3, np.float32))
