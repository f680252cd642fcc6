"""`manage.py up`, with every part real."""

import os
import shutil
import signal
import socket
import stat
from pathlib import Path

import httpx
import pytest

from tests.ops.conftest import Yard, running_yard, wait_for

pytestmark = [pytest.mark.flow, pytest.mark.timeout(1200)]
PARTS = {"broker", "web", "scheduler", "worker-1", "serving"}


def test_everything_comes_up_and_says_where(running: Yard) -> None:
    urls = running.ready()
    assert httpx.get(f"{urls['web']}/readyz").json() == {"status": "ready"}
    assert httpx.get(f"{urls['serving']}/v2/health/live").status_code == 200
    assert urls["pid"] == running.process.pid
    assert set(running.parts()) == PARTS


def test_each_part_leads_a_session_of_its_own_and_has_a_log(running: Yard) -> None:
    assert all(os.getsid(part.pid) == part.pid for part in running.parts().values())
    assert {"up.log", "broker.log", "scheduler.log"} <= {
        path.name for path in (running.home / "log").iterdir()
    }


def test_secrets_are_for_their_owner_alone(running: Yard) -> None:
    for path in (running.home / "secret.key", running.home / "run" / "serving.token"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    broker = next(running.home.parent.rglob("valkey.sock"), None)
    assert broker is None or stat.S_IMODE(broker.stat().st_mode) & 0o077 == 0


def test_a_new_home_prints_a_link_for_the_first_administrator_and_files_it_nowhere(running: Yard) -> None:
    urls = running.ready()
    running.until_said("become the administrator: ")
    link = running.said().split("become the administrator: ")[1].split()[0]
    assert link.startswith(urls["web"])
    assert not any(link in path.read_text() for path in (running.home / "log").iterdir())


def test_a_second_start_on_the_same_home_is_refused_with_the_pid_of_the_first(running: Yard) -> None:
    second = running.manage("up", "--port", "0", "--serving-port", "0")
    assert second.returncode == 1
    assert f"(pid {running.process.pid})" in second.stderr
    assert running.process.poll() is None


def test_parts_that_are_killed_come_back_even_all_at_once(running: Yard) -> None:
    urls, killed = running.ready(), running.parts()
    for part in killed.values():
        part.kill()

    def are_back() -> bool:
        parts = running.parts()
        return all(name in parts and parts[name].pid != killed[name].pid for name in PARTS) and _ready(urls)

    wait_for(are_back, "every part to come back")


def _ready(urls: dict[str, str]) -> bool:
    try:
        dashboard = httpx.get(f"{urls['web']}/readyz", timeout=10)
        return dashboard.is_success and httpx.get(f"{urls['serving']}/v2/health/live").is_success
    except httpx.HTTPError:
        return False


@pytest.mark.parametrize("flag", ["--port", "--serving-port"])
def test_a_busy_port_names_the_flag_to_change(yard: Yard, flag: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ports = {"--port": "0", "--serving-port": "0", flag: str(port)}
        done = yard.manage("up", *(word for pair in ports.items() for word in pair))
    assert done.returncode == 1
    assert f"Port {port} on 127.0.0.1 is in use. Choose another one with {flag}" in done.stderr
    assert not yard.everything()


def test_no_orphan_survives_the_supervisor_and_its_home_starts_again(yard: Yard) -> None:
    yard.start()
    yard.ready()
    assert yard.process
    yard.process.send_signal(signal.SIGKILL)
    yard.process.wait()
    wait_for(lambda: not yard.everything(), "every process of this home to end", seconds=10)
    yard.start()
    yard.ready()
    assert yard.stop(signal.SIGINT) == 0  # Ctrl-C ends everything in order
    assert not yard.everything()
    assert not (yard.home / "run" / "urls.json").exists()
    assert yard.said().rstrip().endswith("Stopped.")


def test_a_second_home_on_the_broker_of_path_disturbs_nobody_and_a_second_ctrl_c_kills_it(
    running: Yard, tmp_path: Path
) -> None:
    if not (shutil.which("redis-server") or shutil.which("valkey-server")):
        if os.environ.get("TRAINYARD_REQUIRE_PATH_BROKER"):
            pytest.fail("no redis-server on PATH, and this run forbids to skip it")
        pytest.skip("neither valkey-server nor redis-server is on PATH")
    with running_yard(tmp_path / "home", TRAINYARD_BROKER="path") as yard:
        yard.start()
        assert yard.ready()["web"] != running.ready()["web"]
        assert "site-packages" not in Path(yard.parts()["broker"].exe()).parts
        yard.parts()["worker-1"].suspend()  # it cannot end in order now
        assert yard.process
        yard.process.send_signal(signal.SIGINT)
        yard.until_said("Stopping")
        yard.process.send_signal(signal.SIGINT)
        yard.process.wait(20)
        assert not yard.everything()
    assert _ready(running.ready())


def test_it_waits_for_a_database_that_is_still_absent(yard: Yard) -> None:
    yard.environment["TRAINYARD_DATABASE_URL"] = "postgresql://nobody@127.0.0.1:1/none"
    yard.start()
    yard.until_said("Waiting for the database: connection failed")  # and why
    assert yard.stop(signal.SIGHUP) == 0  # as when its terminal is closed
    wait_for(lambda: not yard.everything(), "the end", seconds=10)
