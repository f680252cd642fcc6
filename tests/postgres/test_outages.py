"""A worker, a scheduler and a web server whose PostgreSQL refuses, is silent, or answers too slowly.

`TRAINYARD_TEST_OUTAGES=20x60+600` runs twenty outages of a minute and ten slow minutes, with the real limits.
"""

import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx2
import psutil
import psycopg
import pytest

from tests.ops.conftest import needs_postgres, new_database
from tests.postgres.proxy import Proxy, State, running_proxy
from webapp.ops.parent_death import argv_dying_with_parent

pytestmark = [needs_postgres, pytest.mark.timeout(7200)]

ROOT = Path(__file__).resolve().parents[2]
PLAN = os.environ.get("TRAINYARD_TEST_OUTAGES", "")
SHORT_LIMITS = {
    "TRAINYARD_NODE_RENEW": "0.5",
    "TRAINYARD_NODE_RENEW_PATIENCE": "0.5",
    "TRAINYARD_NODE_RETRY_LIMIT": "0.5",
    "TRAINYARD_NODE_LEASE_MARGIN": "13",  # runs are suspended two seconds after a renewal
}
CLIENTS = 16
WEB_CONNECTIONS, WEB_THREADS = 12, 20
SPARE = 3
"""Connections that a part may open beside those that it has when it is idle."""


def plan() -> tuple[int, float, float, float]:
    """Return the number of outages, and the seconds of each, of the slow time, and until all is normal."""
    if not PLAN:
        return 15, 2.5, 10.0, 15.0
    match = re.fullmatch(r"(\d+)x(\d+)\+(\d+)", PLAN)
    assert match, f"TRAINYARD_TEST_OUTAGES={PLAN!r}: write 20x60+600"
    return int(match[1]), float(match[2]), float(match[3]), 15.0


@dataclass
class Installation:
    """A worker with one training, and a scheduler, behind a proxy; and a way around it."""

    home: Path
    url: str
    proxy: Proxy
    database: psycopg.Connection
    web: str
    processes: dict[str, subprocess.Popen[bytes]]

    def environment(self, url: str) -> dict[str, str]:
        return {
            **{name: value for name, value in os.environ.items() if not name.startswith("TRAINYARD_")},
            "DJANGO_SETTINGS_MODULE": "webapp.settings.main",
            "TRAINYARD_HOME": str(self.home),
            "TRAINYARD_DATABASE_URL": url,
            "TRAINYARD_REDIS_URL": "unix:///nowhere/valkey.sock",
            "TRAINYARD_RUNNER_MODULE": "tests.supervise.fake_runner",
            "TRAINYARD_FORK_RUNNERS": "0",
            "TRAINYARD_SANDBOX_LEVELS": "process",
            **({} if PLAN else SHORT_LIMITS),
        }

    def call(self, *command: str) -> None:
        subprocess.run(
            [sys.executable, *command], cwd=ROOT, env=self.environment(self.url), check=True, timeout=600
        )

    def start(self, name: str, *command: str, listener: socket.socket | None = None) -> None:
        address = urlsplit(self.url)
        through = f"postgresql://{address.username}@127.0.0.1:{self.proxy.port}{address.path}"
        with (self.home.parent / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                argv_dying_with_parent([sys.executable, *command]),
                cwd=ROOT,
                env=self.environment(f"{through}?application_name={name}"),
                stdout=log,
                stderr=subprocess.STDOUT,
                pass_fds=() if listener is None else (listener.fileno(),),
            )

    def asks_database(self, timeout: float) -> bool:
        """Return whether the web server looks up a token in the database within a time."""
        with suppress(httpx2.HTTPError):
            answer = httpx2.get(
                f"{self.web}/api/v1/jobs", headers={"Authorization": "Bearer ty_unknown"}, timeout=timeout
            )
            return bool(answer.status_code == 401)
        return False

    def row(self, query: str) -> tuple[Any, ...]:
        row = self.database.execute(query).fetchone()
        assert row is not None
        return tuple(row)

    def connections(self, name: str) -> int:
        query = f"SELECT count(*) FROM pg_stat_activity WHERE application_name = '{name}'"
        return int(self.row(query)[0])

    def threads(self, name: str) -> int:
        return psutil.Process(self.processes[name].pid).num_threads()

    def attempt(self) -> tuple[Any, ...]:
        """Return the number and the state of the training's newest attempt, and when it was renewed."""
        return self.row(
            "SELECT number, state, lease_until - interval '15 seconds' FROM jobs_attempt "
            "WHERE job_id = (SELECT min(id) FROM jobs_job) ORDER BY id DESC LIMIT 1"
        )

    def now(self) -> datetime:
        (time,) = self.row("SELECT clock_timestamp()")
        assert isinstance(time, datetime)
        return time

    def log(self, name: str) -> str:
        return (self.home.parent / f"{name}.log").read_text()


@pytest.fixture
def installation(tmp_path: Path) -> Iterator[Installation]:
    home = tmp_path / "home"
    with new_database() as (url, database):
        folder = dict(parse_qsl(urlsplit(url).query))["host"]
        with running_proxy(Path(folder) / ".s.PGSQL.5432") as proxy:
            listener = socket.create_server(("127.0.0.1", 0))
            web = f"http://127.0.0.1:{listener.getsockname()[1]}"
            made = Installation(home, url, proxy, database, web, {})
            made.call("manage.py", "migrate", "--verbosity", "0")
            made.call("-m", "tests.postgres.submit_job", "100000")
            made.start("scheduler", "manage.py", "scheduler")
            made.start("worker", "-m", "workers.node", "--slots", "2", "--name", "w")
            server = ("-m", "webapp.ops.web_server", "--fd", str(listener.fileno()))
            made.start("web", *server, listener=listener)
            try:
                yield made
            finally:
                for process in made.processes.values():
                    process.kill()
                    process.wait()
                listener.close()
                for name in made.processes:
                    sys.stdout.write(f"--- {name}\n{made.log(name)[-6000:]}\n")


def wait_until(condition: Callable[[], object], seconds: float, what: str) -> float:
    """Return after how many seconds a condition held."""
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < seconds, f"not within {seconds:g} s: {what}"
        time.sleep(0.1)
    return time.monotonic() - began


def runs(installation: Installation, since: datetime) -> bool:
    """Return whether the first attempt runs, and was renewed after a time."""
    with suppress(AssertionError):  # no attempt yet
        number, state, renewed = installation.attempt()
        return (number, state) == (1, "running") and bool(renewed > since)
    return False


def test_a_worker_and_a_scheduler_recover_from_every_kind_of_outage(installation: Installation) -> None:
    count, seconds, slow_seconds, patience = plan()
    began = installation.now()
    wait_until(lambda: runs(installation, began), 240, "the training runs")
    wait_until(lambda: installation.asks_database(5), 120, "the web server answers")
    time.sleep(5)
    parts = ("worker", "scheduler", "web")
    usual = {name: (installation.connections(name), installation.threads(name)) for name in parts}
    # Threads and connections that requests have shared, and that wait for the next ones.
    usual["web"] = (WEB_CONNECTIONS, usual["web"][1] + WEB_THREADS)

    def is_normal(since: datetime) -> bool:
        if not (runs(installation, since) and installation.asks_database(2)):
            return False
        return all(
            installation.connections(name) <= connections + SPARE
            and installation.threads(name) <= threads + SPARE
            for name, (connections, threads) in usual.items()
        )

    def outage(state: State, length: float) -> None:
        installation.proxy.become(state)
        end = time.monotonic() + length
        with ThreadPoolExecutor(CLIENTS) as clients:
            # Their clients do not wait as long as the database does.
            list(clients.map(installation.asks_database, [min(2.0, length / 2)] * CLIENTS))
        time.sleep(max(0.0, end - time.monotonic()))
        installation.proxy.become("open")
        over = installation.now()
        taken = wait_until(
            lambda: is_normal(over), patience, f"normal again after {length:g} s {state}; usual: {usual}"
        )
        now = {name: (installation.connections(name), installation.threads(name)) for name in usual}
        sys.stdout.write(f"{state} {length:g} s: normal after {taken:.1f} s; {now}, usual {usual}\n")
        sys.stdout.flush()

    for number in range(count):
        outage(("refusing", "silent", "silent")[number % 3], seconds)
    installation.proxy.delay = 4.0 if PLAN else 1.0
    outage("slow", slow_seconds)
    assert all(process.poll() is None for process in installation.processes.values())
    assert installation.attempt()[:2] == (1, "running"), "no outage ended the run"
