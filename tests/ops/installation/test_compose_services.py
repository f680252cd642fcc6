"""All services of Compose run together with their commands as written, under their users and capabilities."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from tests.ops.conftest import NOTHING_TO_DO, PATIENCE, ROOT, answers, wait_for
from tests.ops.installation import compose
from tests.ops.installation.compose import PASSWORDS, UID, as_in_container, can_confine
from webapp.ops import broker, ports


class Place:
    """The network and the volumes of Compose on one machine."""

    def __init__(self, home: Path) -> None:
        self.home, self.backups = home, home.parent / "backups"
        self.web, self.serving, self.valkey = (ports.free_port("127.0.0.1", 0, flag="") for _ in range(3))
        own = {
            "TRAINYARD_DATABASE_URL": f"sqlite:///{home}/trainyard.sqlite3",
            "TRAINYARD_REDIS_URL": f"redis://:{PASSWORDS['TRAINYARD_BROKER_PASSWORD']}@127.0.0.1:{self.valkey}/0",
            "TRAINYARD_SERVING_URL": f"http://127.0.0.1:{self.serving}",
        }
        self.services = compose.load("docker-compose.yml", variables=PASSWORDS | own)["services"]
        self.status = {name: ports.free_port("127.0.0.1", 0, flag="") for name in self.services}
        self.ours = [name for name in self.services if self.services[name]["image"].startswith("trainyard")]

    def command(self, name: str, words: list[str]) -> list[str]:
        """Return a command of a service's container with the addresses and folders of this machine."""
        here = {
            "python": sys.executable,
            "0.0.0.0": "127.0.0.1",
            "8000": str(self.web),
            "8501": str(self.serving),
            "http://web:8000": f"http://127.0.0.1:{self.web}",
            "/backups": str(self.backups),
            "0.0.0.0:9100": f"127.0.0.1:{self.status[name]}",
            "http://127.0.0.1:9100/livez": f"http://127.0.0.1:{self.status[name]}/livez",
        }
        return [here.get(word, word) for word in words]

    def environment(self, name: str) -> dict[str, str]:
        kept = ("PATH", "LANG", "LD_LIBRARY_PATH", "PYTHONDONTWRITEBYTECODE")
        inherited = {variable: os.environ[variable] for variable in kept if variable in os.environ}
        values = compose.image_environment() | NOTHING_TO_DO | self.services[name]["environment"]
        # Variables for other parts in the common file are accepted by each.
        return values | PASSWORDS | inherited | {"TRAINYARD_HOME": str(self.home), "HOME": str(self.home)}

    def start(self, name: str, log: Path) -> "subprocess.Popen[bytes]":
        service = self.services[name]
        command = self.command(name, service["command"])
        with log.open("wb") as output:
            return subprocess.Popen(
                as_in_container(service, command, self.home.parent) if can_confine() else command,
                cwd=ROOT,
                env=self.environment(name),
                stdout=output,
                stderr=output,
            )

    def run(self, name: str, words: list[str]) -> "subprocess.CompletedProcess[str]":
        """Run a health check of a service inside of its container."""
        command = self.command(name, words)
        return subprocess.run(
            as_in_container(self.services[name], command, self.home.parent) if can_confine() else command,
            cwd=ROOT,
            env=self.environment(name),
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )


@pytest.fixture
def place(home_of_image: Path) -> Iterator[Place]:
    """The broker runs with the command of its service."""
    place = Place(home_of_image)
    (server, *_) = (*broker._in_wheel(), *broker._on_path())
    command = [str(server), *place.services["valkey"]["command"][1:]]
    bound = ("--port", str(place.valkey), "--bind", "127.0.0.1")
    with subprocess.Popen([*command, *bound], stdout=subprocess.DEVNULL) as process:
        try:
            yield place
        finally:
            process.terminate()


@pytest.mark.flow
@pytest.mark.timeout(1200)
def test_the_commands_of_all_services_run_and_end_on_sigterm(place: Place, tmp_path: Path) -> None:
    running: dict[str, subprocess.Popen[bytes]] = {}
    web = f"http://127.0.0.1:{place.web}"
    try:
        for name in place.ours:  # web first, as in `depends_on`: it migrates
            running[name] = place.start(name, tmp_path / f"{name}.log")
            if name == "web":
                wait_for(lambda: is_up(f"{web}/healthz", running, tmp_path), "web")
        wait_for(lambda: is_up(f"{web}/readyz", running, tmp_path), "scheduler and worker")
        wait_for(lambda: answers(f"http://127.0.0.1:{place.serving}/v2/health/live"), "serving")
        (backup,) = wait_for(lambda: list(place.backups.glob("trainyard-*.tar")), "a backup")
        assert backup.stat().st_mode & 0o777 == 0o600
        if can_confine():
            assert {process_user(process.pid) for process in running.values()} == {UID}
            assert backup.stat().st_uid == UID
        for name in ("scheduler", "worker", "backup"):
            assert place.run(name, place.services[name]["healthcheck"]["test"][1:]).returncode == 0, name
        verified = place.run("backup", ["python", "manage.py", "backup", "--verify", str(backup)])
        assert "can be restored" in verified.stdout, verified.stderr
        assert place.run("web", ["python", "scripts/probe", f"{web}/healthz"]).returncode == 0
        for name, process in reversed(running.items()):
            process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE) in (0, -signal.SIGTERM), name
    finally:
        for process in running.values():
            process.kill()


def is_up(url: str, running: dict[str, "subprocess.Popen[bytes]"], logs: Path) -> bool:
    """Return whether a URL answers. A service that has ended by itself fails the test with its output."""
    for name, process in running.items():
        assert process.poll() is None, f"{name}: {(logs / f'{name}.log').read_text()}"
    return answers(url)


def process_user(pid: int) -> int:
    """Return the user of a process: each command replaces those that gave it the user."""
    return Path(f"/proc/{pid}").stat().st_uid


def test_the_broker_refuses_a_client_without_its_password(place: Place) -> None:
    def answers_with(password: str | None) -> bool | None:
        try:
            return bool(redis.Redis(port=place.valkey, password=password).ping())
        except redis.ConnectionError:  # an AuthenticationError is one too
            return None

    wait_for(lambda: answers_with(PASSWORDS["TRAINYARD_BROKER_PASSWORD"]), "the broker")
    with pytest.raises(redis.AuthenticationError):
        redis.Redis(port=place.valkey).ping()
