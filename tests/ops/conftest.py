"""Starts and stops a whole installation in its own home, as an operator would."""

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import psutil
import psycopg
import pytest

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 240.0  # six Python processes start on two possibly busy cores
POSTGRES = os.environ.get("TRAINYARD_TEST_POSTGRES_URL", "")
needs_postgres = pytest.mark.skipif(
    not POSTGRES, reason="TRAINYARD_TEST_POSTGRES_URL is not set: run through scripts/with-postgres"
)
NOTHING_TO_DO = {"TRAINYARD_MIN_FREE_BYTES": str(2**60)}
"""No disk has that much space, so workers do not start to profile the bundled data sets."""
FIRST_INTERVAL, LAST_INTERVAL = 0.02, 0.4  # seconds between checks; the interval grows
HTTP = httpx2.Client(timeout=10, limits=httpx2.Limits(max_keepalive_connections=0))
"""Shared by all checks: each new client loads all CA certificates, which takes 40 ms."""


def wait_for[T](
    condition: Callable[[], T | None],
    what: str,
    seconds: float = PATIENCE,
    *,
    interval: float = LAST_INTERVAL,
) -> T:
    """Return the first true value of `condition`, which is asked at least every `interval` seconds."""
    deadline = time.monotonic() + seconds
    pause = min(interval, FIRST_INTERVAL)
    while time.monotonic() < deadline:
        if value := condition():
            return value
        time.sleep(pause)
        pause = min(interval, pause * 1.3)
    raise AssertionError(f"waited {seconds:.0f} s without success for {what}")


def answers(url: str) -> bool:
    """Return whether a URL answers with status 200."""
    try:
        return HTTP.get(url).is_success
    except httpx2.HTTPError:
        return False


class Yard:
    """A home, and the `manage.py up` that runs on it.

    Attributes:
        program: the folder of the program; another version than this checkout may be started.
    """

    program = ROOT

    def __init__(self, home: Path, **environment: str) -> None:
        self.home = home
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("TRAINYARD_")},
            "TRAINYARD_HOME": str(home),
            "DJANGO_SETTINGS_MODULE": "webapp.settings.main",
            "TRAINYARD_STANDBY": "0",  # no test waits for the first step of a training
            **environment,
        }
        self.output = home.parent / f"{home.name}.out"
        self.process: subprocess.Popen[bytes] | None = None

    def manage(self, *arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
        """Run one management command to its end."""
        command = [sys.executable, "manage.py", *arguments]
        return subprocess.run(
            command,
            cwd=self.program,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            **options,
        )

    def start(self, *arguments: str) -> None:
        """Start `up` on free ports."""
        command = [sys.executable, "manage.py", "up", "--port", "0", "--serving-port", "0", "--slots", "1"]
        with self.output.open("wb") as output:
            self.process = subprocess.Popen(
                [*command, *arguments],
                cwd=self.program,
                env=self.environment,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def be_up(self) -> dict[str, Any]:
        """Start it if it does not run; wait until everything is up and return the published URLs."""
        if self.process is None or self.process.poll() is not None:
            self.start()
        return self.ready()

    def ready(self) -> dict[str, Any]:
        """Wait until everything is up; return the published URLs."""

        def published() -> dict[str, Any] | None:
            assert self.process is not None
            assert self.process.poll() is None, self.printed()
            path = self.home / "run" / "urls.json"
            urls = json.loads(path.read_text()) if path.exists() else {}
            return urls if urls.get("pid") == self.process.pid else None  # else written by a killed run

        return wait_for(published, f"urls.json; its output:\n{self.printed()}")

    def printed(self) -> str:
        """Return its output since the start."""
        return self.output.read_text(errors="replace") if self.output.exists() else ""

    def until_printed(self, words: str) -> None:
        """Wait until the output contains `words`."""
        wait_for(lambda: words in self.printed(), f"{words!r}")

    def parts(self) -> dict[str, psutil.Process]:
        """Return the parts that run, by name."""
        assert self.process is not None
        marked = [(self._part(child), child) for child in psutil.Process(self.process.pid).children()]
        return {name: child for name, child in marked if name}

    def everything(self) -> list[psutil.Process]:
        """Return this home's living processes, the supervisor and the runners included."""
        return [process for process in psutil.process_iter() if self._is_mine(process)]

    def _is_mine(self, process: psutil.Process) -> bool:
        environment = self._environment(process)
        runs_below = environment.get("HOME", "").startswith(
            f"{self.home}/"
        )  # a runner gets no other variable of its home
        return environment.get("TRAINYARD_HOME") == str(self.home) or runs_below

    def _part(self, process: psutil.Process) -> str | None:
        environment = self._environment(process)  # read once: the process may end between two reads
        mine = environment.get("TRAINYARD_HOME") == str(self.home)
        return environment.get("TRAINYARD_PART") if mine else None

    @staticmethod
    def _environment(process: psutil.Process) -> dict[str, str]:
        """Return a process' environment; empty if it has ended."""
        try:
            return {} if process.status() == psutil.STATUS_ZOMBIE else process.environ()
        except psutil.Error:
            return {}

    def stop(self, number: int = signal.SIGINT) -> int:
        """Send one signal and return the exit status."""
        assert self.process is not None
        self.process.send_signal(number)
        return self.process.wait(PATIENCE)

    def end(self) -> None:
        """Kill all processes that use this home."""
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for process in self.everything():
            with suppress(psutil.NoSuchProcess):  # it has ended meanwhile
                process.kill()


@contextmanager
def new_database() -> Iterator[tuple[str, psycopg.Connection]]:
    """A PostgreSQL database for one test: its URL, and a connection to it."""
    name = f"trainyard_ops_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(POSTGRES, autocommit=True) as server:
        server.execute(f"CREATE DATABASE {name}")
        url = urlsplit(POSTGRES)._replace(path=f"/{name}").geturl()
        try:
            with psycopg.connect(url, autocommit=True) as connection:
                yield url, connection
        finally:
            server.execute(f"DROP DATABASE {name} WITH (FORCE)")


@contextmanager
def running_yard(home: Path, **environment: str) -> Iterator[Yard]:
    yard = Yard(home, **environment)
    try:
        yield yard
    finally:
        yard.end()


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[Yard]:
    """An installation that is not started."""
    with running_yard(tmp_path / "home") as installed:
        yield installed


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yard]:
    """A new home for all tests in a file."""
    environment = {"TRAINYARD_BROKER": "embedded", **NOTHING_TO_DO}
    with running_yard(tmp_path_factory.mktemp("yard") / "home", **environment) as installed:
        yield installed


@pytest.fixture
def running(installation: Yard) -> Yard:
    """The file's installation, which is up: one that an earlier test has ended is started again."""
    installation.be_up()
    return installation
