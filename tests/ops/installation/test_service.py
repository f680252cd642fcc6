"""A service restarts its part; with real processes."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import psutil
import pytest

from tests.present import present
from webapp.ops.console import Console
from webapp.ops.service import Part, RestartBackoff, Service

SLEEP = "import time; print('up', flush=True); time.sleep(60)"
STUBBORN = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN);" + SLEEP
WITH_CHILD = (
    "import subprocess, sys; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)']);" + SLEEP
)


class Lines(Console):
    """A console that keeps its lines."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.lines: list[str] = []

    def line(self, name: str, text: str) -> None:
        self.lines.append(text)

    def message(self, text: str, *, error: bool = False) -> None:
        self.lines.append(text)


@pytest.fixture
def console(tmp_path: Path) -> Lines:
    return Lines(tmp_path)


@pytest.fixture
async def service(console: Lines) -> AsyncIterator[Service]:
    running = start(console, SLEEP)
    yield running
    running.kill()
    await running.stop()


def start(console: Lines, code: str, *, grace: float = 5) -> Service:
    part = Part("part", (sys.executable, "-c", code), grace=grace)
    service = Service(part, dict(os.environ), console, backoff=RestartBackoff(first=0.01))
    service.start()
    return service


async def until[T](condition: Callable[[], T | None], seconds: float = 20) -> T:
    async with asyncio.timeout(seconds):
        while not (value := condition()):
            await asyncio.sleep(0.01)
    return value


async def test_a_part_that_is_killed_is_restarted(service: Service, console: Lines) -> None:
    first = await until(lambda: service.pid)
    await until(lambda: "up" in console.lines)
    os.kill(first, 9)
    second = await until(lambda: service.pid if service.pid != first else None)
    assert second != first
    assert any("was ended by SIGKILL; restarting it" in line for line in console.lines)


async def test_a_stopped_part_stays_down(service: Service, console: Lines) -> None:
    await until(lambda: "up" in console.lines)
    pid = service.pid
    await service.stop()
    assert not psutil.pid_exists(pid)
    assert service.pid is None


async def test_a_part_that_ignores_sigterm_is_killed_after_its_grace_period(console: Lines) -> None:
    service = start(console, STUBBORN, grace=0.2)
    await until(lambda: "up" in console.lines)
    await service.stop()
    assert service.pid is None
    assert "part did not end within 0 s; killing it." in console.lines


async def test_processes_in_the_group_of_a_dead_part_are_killed(console: Lines) -> None:
    service = start(console, WITH_CHILD)
    await until(lambda: "up" in console.lines)
    (child,) = psutil.Process(service.pid).children()
    os.kill(present(service.pid), 9)
    await until(lambda: not child.is_running() or child.status() == psutil.STATUS_ZOMBIE)
    await service.stop()


async def test_a_missing_program_is_retried_with_a_message(console: Lines) -> None:
    service = Service(
        Part("part", ("/nowhere/at-all",)), dict(os.environ), console, backoff=RestartBackoff(first=0.01)
    )
    service.start()
    await until(lambda: service.failures >= 2)
    await service.stop()
    assert any("ended with status 1; restarting it" in line for line in console.lines)


async def test_an_overlong_line_is_split(console: Lines) -> None:
    service = start(console, f"import sys; sys.stdout.write('x' * 200_000 + '\\n');{SLEEP}")
    await until(lambda: "up" in console.lines)
    await service.stop()
    long = [line for line in console.lines if line.startswith("xxx")]
    assert sum(map(len, long)) == 200_000
    assert max(map(len, long)) <= 2 * 64 * 1024


def test_the_delay_grows_with_each_failure_and_resets_after_a_healthy_run() -> None:
    backoff = RestartBackoff(first=1, limit=6, healthy_after=10)
    assert [backoff.delay_after(0) for _ in range(4)] == [1, 2, 4, 6]
    assert backoff.delay_after(11) == 1
