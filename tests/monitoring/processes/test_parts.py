"""A scheduler and a worker as processes: their probes, their JSON lines, and the commands of the guide."""

import contextlib
import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.architecture.sources import ROOT
from tests.ops.guide_commands import command

PAGE = 17
WAIT = 120.0


class Installation:
    """A home with a migrated database and no broker."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.environment: Any = {
            name: text for name, text in os.environ.items() if not name.startswith("TRAINYARD_")
        } | {
            "TRAINYARD_HOME": str(home),
            "DJANGO_SETTINGS_MODULE": "webapp.settings.main",
            "TRAINYARD_LOG_JSON": "1",
            "TRAINYARD_REDIS_URL": "redis://127.0.0.1:9/0",
        }
        self.run("migrate", "--verbosity", "0")
        self.run("adduser", "ada", "--admin")

    def run(self, *words: str) -> str:
        ended = subprocess.run(
            [sys.executable, "manage.py", *words],
            cwd=ROOT, env=self.environment, capture_output=True, text=True, timeout=WAIT, check=False,
        )  # fmt: skip
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    @contextlib.contextmanager
    def started(self, part: str, port: int) -> Iterator[Path]:
        """Run the command of the guide, at another port, and return the file of its output."""
        log = self.home / f"{part}.out"
        line = (
            command(PAGE, "manage.py scheduler") if part == "scheduler" else command(PAGE, "manage.py worker")
        )
        old = {"scheduler": "9101", "worker": "9102"}[part]
        process = line.start(
            {old: str(port), ".venv/bin/python": sys.executable}, log=log, **self.environment
        )
        try:
            yield log
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Installation:
    home = tmp_path_factory.mktemp("home")
    home.chmod(0o700)
    return Installation(home)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


def ask(port: int, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=20) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except OSError as error:
        return 0, str(error)


def until_status(port: int, path: str, status: int) -> None:
    deadline = time.monotonic() + WAIT
    while (answer := ask(port, path))[0] != status:
        assert time.monotonic() < deadline, answer
        time.sleep(0.1)


def lines_of(log: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.read_text().splitlines() if line]


def test_a_scheduler_answers_probes_and_survives_a_locked_database(installation: Installation) -> None:
    port = free_port()
    with installation.started("scheduler", port) as log:
        until_status(port, "/readyz", 200)
        for line, old in (
            (command(PAGE, "9101/livez"), "9101"),
            (command(PAGE, "9102/readyz"), "9102"),
        ):
            probe = line.run({old: str(port), ".venv/bin/python": sys.executable})
            assert probe.returncode == 0, probe.stderr
        assert "trainyard_scheduler_leader 1.0" in ask(port, "/metrics")[1]
        with sqlite3.connect(installation.home / "trainyard.sqlite3", isolation_level=None) as lock:
            lock.execute("BEGIN EXCLUSIVE")
            time.sleep(3)
            assert ask(port, "/livez")[0] == 200
            lock.execute("ROLLBACK")
    parts = {line["part"] for line in lines_of(log)}
    assert parts == {"scheduler"}


def test_a_worker_answers_probes_and_its_lines_are_json(installation: Installation) -> None:
    port = free_port()
    with installation.started("worker", port) as log:
        until_status(port, "/readyz", 200)
        assert ask(port, "/livez")[0] == 200
        assert "trainyard_worker_registered 1.0" in ask(port, "/metrics")[1]
    lines = lines_of(log)
    assert any("is up with" in line["event"] for line in lines)
    assert {line["part"] for line in lines} == {"worker"}


@pytest.mark.parametrize("as_json", ["0", "1"])
def test_a_dashboard_writes_where_it_listens_once_it_does(
    as_json: str, installation: Installation, tmp_path: Path
) -> None:
    port, log = free_port(), tmp_path / "web.out"
    with log.open("w") as out:
        process = subprocess.Popen(
            [sys.executable, "manage.py", "web", "--port", str(port)],
            cwd=ROOT, env=installation.environment | {"TRAINYARD_LOG_JSON": as_json}, stdout=out, stderr=out,
        )  # fmt: skip
    try:
        deadline = time.monotonic() + WAIT
        while f"the dashboard listens at http://127.0.0.1:{port}" not in log.read_text():
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.1)
        assert ask(port, "/livez")[0] == 200
    finally:
        process.terminate()
        process.wait(60)
    if as_json == "1":
        assert {line["part"] for line in lines_of(log)} == {"web"}


def test_a_token_for_metrics_is_made_as_the_guide_says(installation: Installation, tmp_path: Path) -> None:
    file = tmp_path / "trainyard.token"
    made = command(PAGE, "--scopes metrics").run(
        {".venv/bin/python": sys.executable, "trainyard.token": str(file)}, **installation.environment
    )
    assert made.returncode == 0, made.stderr
    assert file.read_text().startswith("ty_")


def test_up_writes_json_as_the_guide_says(installation: Installation, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    variables = installation.environment | {"TRAINYARD_HOME": str(home), "TRAINYARD_REDIS_URL": ""}
    log = tmp_path / "up.out"
    process = command(PAGE, "manage.py up").start(
        {".venv/bin/python": sys.executable, "manage.py up": "manage.py up --port 0 --serving-port 0"},
        log=log,
        **variables,
    )
    try:
        deadline = time.monotonic() + 2 * WAIT
        while not (home / "run" / "urls.json").exists():
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.2)
        web = json.loads((home / "run" / "urls.json").read_text())["web"]
        port = web.rpartition(":")[2]
        probe = command(PAGE, "without=worker").run({"8000": port, ".venv/bin/python": sys.executable})
        assert probe.returncode == 0, probe.stderr
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(WAIT)
    assert "up" in {line["part"] for line in lines_of(log)}
    assert (home / "log" / "worker-1.log").exists()
    for file in (home / "log").glob("*.log"):
        assert all("event" in line for line in lines_of(file)), file
    assert "/login/" not in log.read_text().replace("/login/•••", "")
