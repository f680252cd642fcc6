"""A server that runs but does not answer is replaced; one that starts, or a late supervisor, is not."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from webapp.ops import watchdog
from webapp.ops.console import Console
from webapp.ops.service import Part, RestartBackoff, Service
from webapp.ops.watchdog import Watchdog

SERVER = """
import faulthandler, os, signal, socket, sys
faulthandler.register(signal.SIGUSR2)
path, answers = sys.argv[1], int(sys.argv[2])
if os.path.exists(path): os.unlink(path)
listener = socket.socket(socket.AF_UNIX)
listener.bind(path)
listener.listen()
kept = []
while True:
    client, _ = listener.accept()
    kept.append(client)
    client.recv(999)
    if answers:
        client.sendall(b"HTTP/1.1 200 OK\\r\\n\\r\\n")
        client.close()
"""
TICK, PATIENCE = 0.02, 0.1


class Watched:
    """A part with its watchdog."""

    def __init__(self, folder: Path, answers: bool) -> None:
        self.folder, socket = folder, folder / "part.sock"
        self.console = Console(folder)
        part = Part("part", (sys.executable, "-S", "-c", SERVER, str(socket), str(int(answers))))
        self.service = Service(part, dict(os.environ), self.console, backoff=RestartBackoff(first=0.01))
        self.watchdog = Watchdog(self.service, socket, "/healthz", self.console, patience=PATIENCE, tick=TICK)
        self.asked = 0
        ask = self.watchdog._ask

        async def counted() -> bool:
            is_alive = await ask()
            self.asked += is_alive
            return is_alive

        self.watchdog._ask = counted  # type: ignore[method-assign]

    async def until(self, condition: Callable[[], object]) -> None:
        async with asyncio.timeout(20):
            while not condition():
                await asyncio.sleep(0.01)

    @property
    def log(self) -> str:
        path = self.folder / "up.log"
        return path.read_text() if path.exists() else ""


type Start = Callable[..., Watched]


@pytest.fixture
async def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Start]:
    monkeypatch.setattr(watchdog, "PAUSE", 0.01)
    monkeypatch.setattr(watchdog, "STACKS_WAIT", 0.05)
    started: list[tuple[Watched, asyncio.Task[None]]] = []

    def begin(answers: bool = True) -> Watched:
        watched = Watched(tmp_path, answers)
        watched.service.start()
        started.append((watched, asyncio.create_task(watched.watchdog.run())))
        return watched

    yield begin
    for watched, task in started:
        task.cancel()
        watched.service.kill()
        await watched.service.stop()
        watched.console.close()


async def stop_once_asked(watched: Watched) -> None:
    before = watched.asked
    await watched.until(lambda: watched.asked > before)
    stopped = watched.service.pid
    assert stopped is not None
    os.kill(stopped, signal.SIGSTOP)
    await watched.until(lambda: watched.service.pid not in (None, stopped))


async def test_a_process_that_is_stopped_is_replaced_and_watched_again(start: Start) -> None:
    watched = start()
    for _ in range(2):
        await stop_once_asked(watched)
    assert "part did not answer for 0 s; replacing it." in watched.log
    assert watched.watchdog._doublings == 2, "the next replacement takes longer"


async def test_the_stacks_of_a_process_that_hangs_are_logged(start: Start, tmp_path: Path) -> None:
    watched = start()
    await watched.until(lambda: watched.asked)
    pid = watched.service.pid
    assert pid is not None
    watched.watchdog._ask = lambda: asyncio.sleep(60, True)  # type: ignore[method-assign]
    await watched.until(lambda: watched.service.pid not in (None, pid))
    assert "most recent call first" in (tmp_path / "part.log").read_text()


async def test_a_process_that_has_not_answered_yet_may_take_its_time(start: Start) -> None:
    watched = start(answers=False)
    await watched.until(lambda: watched.service.pid)
    pid = watched.service.pid
    waited: list[bool] = []
    wait = watched.watchdog._wait

    async def counted(asking: "asyncio.Task[bool] | None") -> bool:
        waited.append(await wait(asking))
        return waited[-1]

    watched.watchdog._wait = counted  # type: ignore[method-assign]
    await watched.until(lambda: len(waited) > 3 * PATIENCE / TICK)
    assert watched.service.pid == pid


async def test_ticks_of_a_supervisor_that_is_late_do_not_count(start: Start) -> None:
    watched = start()
    await watched.until(lambda: watched.asked)
    pid = watched.service.pid
    assert pid is not None
    ticks = 0

    async def late(asking: object) -> bool:
        nonlocal ticks
        ticks += 1
        await asyncio.sleep(0)
        return False

    watched.watchdog._wait = late  # type: ignore[method-assign]
    os.kill(pid, signal.SIGSTOP)
    await watched.until(lambda: ticks > 10 * PATIENCE / TICK)
    assert watched.service.pid == pid
