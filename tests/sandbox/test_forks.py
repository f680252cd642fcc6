"""Sandboxes that begin as forks: their processes as the worker sees them."""

import asyncio
import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

import pytest

from jobs.messages.sandbox import Level, SandboxRequest
from tests.sandbox.conftest import Cases
from tests.sandbox.forks import Forks
from tests.sandbox.test_launch import LIMITS, folder
from workers.confinement.forking import plan_file, sandbox_forks
from workers.confinement.sandbox import usage
from workers.confinement.sandbox.enter import CANNOT_START
from workers.confinement.sandbox.forked_process import KILLED, ForkedProcess
from workers.confinement.sandbox.launch import Owner, Streams, launch_at
from workers.confinement.sandbox.process import SandboxProcess

__all__ = ["folder"]
# Also without a reader of its output.
WAITING = """
import os, time
try:
    os.write(1, b"1\\n")
finally:
    time.sleep(60)
"""


@pytest.fixture(scope="module")
def forks() -> Iterator[Forks]:
    with Forks() as started:
        yield started


def start(forks: Forks, level: Level, folder: Path, owner: Owner | None) -> SandboxProcess:
    """Start a run that waits."""
    (folder / "waiting.py").write_text(WAITING)
    (folder / "waiting.py").chmod(0o644)
    request = SandboxRequest(writable=(str(folder),), folder=str(folder), limits=LIMITS)
    with Path(os.devnull).open() as null:
        streams = Streams(stdout=subprocess.PIPE, stderr=subprocess.STDOUT, keep=(null.fileno(),))
        command = [sys.executable, "-m", "waiting"]
        process = launch_at(level, request, command, owner=owner, streams=streams, start=forks.starter)
    assert process.stdout is not None
    printed = process.stdout.readline()
    assert printed == b"1\n", printed + process.stdout.read()
    return process


def is_gone(pid: int) -> bool:
    """Wait until a process has been reaped."""
    deadline = time.monotonic() + 20
    while (present := Path(f"/proc/{pid}").exists()) and time.monotonic() < deadline:
        time.sleep(0.01)
    return not present


@pytest.mark.parametrize("level", list(Level))
def test_a_signal_reaches_the_process_of_the_run_alone(
    level: Level, cases: Cases, forks: Forks, folder: Path, owner: Owner | None
) -> None:
    cases.require("user" if owner is None else "root", level)
    with start(forks, level, folder, owner) as process:
        assert len(process.processes()) == 1
        process.send_signal(signal.SIGUSR1)
        assert process.wait(60) == -signal.SIGUSR1


def test_a_run_ends_with_the_process_that_has_joined_bubblewrap(
    cases: Cases, forks: Forks, folder: Path, owner: Owner | None
) -> None:
    cases.require("user" if owner is None else "root", Level.BUBBLEWRAP)
    with start(forks, Level.BUBBLEWRAP, folder, owner) as process:
        (run,) = process.processes()
        (joined,) = (pid for pid in usage.children(process.pid) if run in usage.children(pid))
        os.kill(joined, signal.SIGKILL)
        assert process.wait(60) == -signal.SIGKILL
        assert is_gone(run)


def test_a_fork_that_cannot_be_watched_ends_before_another_process_replaces_it(
    forks: Forks, folder: Path, owner: Owner | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    pids: list[int] = []

    def fail(pid: int, *_: Any) -> NoReturn:
        pids.append(pid)
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(sandbox_forks, "ForkedProcess", fail)

    def replace(*_: object) -> NoReturn:
        assert is_gone(pids[0])
        raise InterruptedError

    monkeypatch.setattr(sandbox_forks, "spawn", replace)
    with pytest.raises(InterruptedError):
        start(forks, Level.PROCESS, folder, owner)


def test_a_fork_that_comes_after_its_replacement_does_not_enter_the_sandbox(
    forks: Forks, folder: Path, owner: Owner | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    fork = forks.server.fork
    late: list[Any] = []

    async def fork_late(request: bytes, descriptors: Sequence[int], **_: Any) -> NoReturn:
        late.extend((request, [os.dup(number) for number in descriptors]))
        raise TimeoutError

    async def end_of(request: bytes, descriptors: Sequence[int]) -> int:
        return await (await fork(request, descriptors)).ended

    def replace(*_: object) -> NoReturn:
        raise InterruptedError

    monkeypatch.setattr(forks.server, "fork", fork_late)
    monkeypatch.setattr(sandbox_forks, "spawn", replace)
    with pytest.raises(InterruptedError):
        start(forks, Level.PROCESS, folder, owner)
    assert forks.run(end_of(*late)) == CANNOT_START
    # So does one whose plan cannot be read.
    assert forks.run(end_of(late[0], late[1][1:])) == CANNOT_START
    for descriptor in late[1]:
        os.close(descriptor)


def test_a_fork_that_is_in_its_sandbox_without_a_report_is_not_replaced(
    forks: Forks, folder: Path, owner: Owner | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fork_unseen(_: bytes, descriptors: Sequence[int], **__: Any) -> NoReturn:
        assert plan_file.claim(descriptors[0])
        raise TimeoutError

    monkeypatch.setattr(forks.server, "fork", fork_unseen)
    monkeypatch.setattr(sandbox_forks, "spawn", lambda *_: pytest.fail("two would have one user"))
    with pytest.raises(OSError, match="may be in the sandbox"):
        start(forks, Level.PROCESS, folder, owner)


async def test_the_status_of_a_fork_is_that_of_the_message_of_its_server(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    child = subprocess.Popen(["sleep", "60"])
    ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    process = ForkedProcess(child.pid, ended)
    assert process.poll() is None
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.01)
    process.kill()
    # In the event loop, which receives the message, it does not wait for it.
    with monkeypatch.context() as patch:
        patch.setattr(process._reported, "wait", lambda _: pytest.fail("it would wait for itself"))
        assert process.wait(60) == KILLED
    waiting = asyncio.create_task(asyncio.to_thread(process.wait))
    await asyncio.sleep(0)
    ended.set_result(3)
    assert await waiting == process.returncode == process.wait() == 3
    child.wait()
    # Nothing happens to a process that has the same pid now.
    process.kill()
