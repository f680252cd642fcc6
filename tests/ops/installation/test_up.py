"""`manage.py up`, with every part real.

A start takes many seconds, so all tests have two homes, the second restored from the first's backup.
"""

import os
import shutil
import signal
import stat
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.ops.conftest import HTTP, Yard, answers, running_yard, wait_for
from tests.present import present
from webapp.ops.supervisor import QUIET_SECONDS

pytestmark = [pytest.mark.flow, pytest.mark.timeout(1200)]
HAS_PATH_BROKER = bool(shutil.which("redis-server") or shutil.which("valkey-server"))
PARTS = {"broker", "web", "scheduler", "worker-1", "serving"}


def test_everything_starts_and_publishes_its_urls(running: Yard) -> None:
    urls = running.ready()
    assert HTTP.get(f"{urls['web']}/readyz").json() == {"status": "ready"}
    assert HTTP.get(f"{urls['serving']}/v2/health/live").status_code == 200
    assert urls["pid"] == present(running.process).pid
    assert set(running.parts()) == PARTS


def test_each_part_has_its_own_session_and_log(running: Yard) -> None:
    assert all(os.getsid(part.pid) == part.pid for part in running.parts().values())
    assert {"up.log", "broker.log", "scheduler.log"} <= {
        path.name for path in (running.home / "log").iterdir()
    }


def test_secrets_are_readable_only_by_their_owner(running: Yard) -> None:
    for path in (running.home / "secret.key", running.home / "run" / "serving.token"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    broker = next(running.home.parent.rglob("valkey.sock"), None)
    assert broker is None or stat.S_IMODE(broker.stat().st_mode) & 0o077 == 0


def test_a_new_home_prints_a_link_for_the_first_administrator_and_does_not_log_it(running: Yard) -> None:
    urls = running.ready()
    running.until_printed("become the administrator: ")
    link = running.printed().split("become the administrator: ")[1].split()[0]
    assert link.startswith(urls["web"])
    assert not any(link in path.read_text() for path in (running.home / "log").iterdir())


def test_a_start_is_quiet(running: Yard) -> None:
    running.until_printed("become the administrator: ")
    time.sleep(QUIET_SECONDS / 2)  # a worker writes more a moment later
    told = [line[len("HH:MM:SS ") :].split(" | ", 1) for line in running.printed().splitlines()]
    lines = [(name.strip(), text) for name, text in told]
    assert Counter(name for name, _ in lines if name != "up") == Counter(PARTS)
    assert all(text.startswith("ready") for name, text in lines if name != "up")
    words = [text.split(" ")[0] for name, text in lines if name == "up"]
    # On a slow machine it also names the parts that are not ready yet, every few seconds.
    assert [word for word in words if word != "Not"] == ["Creating", "Ready.", "No"]


def test_a_second_start_on_the_same_home_is_refused_with_the_pid_of_the_first(running: Yard) -> None:
    second = running.manage("up", "--port", "0", "--serving-port", "0")
    assert second.returncode == 1
    assert f"(pid {present(running.process).pid})" in second.stderr
    assert present(running.process).poll() is None


def test_killed_parts_are_restarted_even_all_at_once(running: Yard) -> None:
    urls, killed = running.ready(), running.parts()
    for part in killed.values():
        part.kill()

    def are_back() -> bool:
        parts = running.parts()
        return all(name in parts and parts[name].pid != killed[name].pid for name in PARTS) and _ready(urls)

    wait_for(are_back, "every part to come back")


def _ready(urls: dict[str, str]) -> bool:
    return answers(f"{urls['web']}/readyz") and answers(f"{urls['serving']}/v2/health/live")


def test_it_waits_for_an_unavailable_database(yard: Yard) -> None:
    yard.environment["TRAINYARD_DATABASE_URL"] = "postgresql://nobody@127.0.0.1:1/none"
    yard.start()
    yard.until_printed("Waiting for the database: connection failed")  # and why
    assert yard.stop(signal.SIGHUP) == 0  # as when its terminal is closed
    wait_for(lambda: not yard.everything(), "the end", seconds=10)


@pytest.fixture(scope="module")
def backup(installation: Yard, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A backup of the installation, made while it ran."""
    installation.be_up()
    saved = tmp_path_factory.mktemp("backup") / "all.tar"
    done = installation.manage("backup", str(saved))
    assert done.returncode == 0, done.stderr
    return saved


@pytest.fixture(scope="module")
def copy(backup: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yard]:
    """A second home, restored from the backup, on the broker in PATH where there is one."""
    broker = "path" if HAS_PATH_BROKER else "embedded"
    with running_yard(tmp_path_factory.mktemp("copy") / "home", TRAINYARD_BROKER=broker) as restored:
        done = restored.manage("restore", str(backup))
        assert done.returncode == 0, done.stderr
        yield restored


def test_no_orphan_survives_the_supervisor_and_its_home_starts_again(running: Yard) -> None:
    assert running.process
    running.process.send_signal(signal.SIGKILL)
    running.process.wait()
    wait_for(lambda: not running.everything(), "every process of this home to end", seconds=10)
    running.start()
    running.ready()


def test_a_backup_of_a_running_installation_starts_beside_it(running: Yard, copy: Yard) -> None:
    assert (copy.home / "secret.key").read_text() == (running.home / "secret.key").read_text()
    assert copy.be_up()["web"] != running.ready()["web"]


def test_the_broker_on_path_is_used(copy: Yard) -> None:
    if not HAS_PATH_BROKER:
        if os.environ.get("TRAINYARD_REQUIRE_PATH_BROKER"):
            pytest.fail("no redis-server on PATH, and this run forbids to skip it")
        pytest.skip("neither valkey-server nor redis-server is on PATH")
    copy.be_up()
    assert "site-packages" not in Path(copy.parts()["broker"].exe()).parts


def test_a_second_ctrl_c_kills_everything_and_disturbs_no_other_home(running: Yard, copy: Yard) -> None:
    copy.be_up()
    running.parts()["worker-1"].suspend()  # it cannot end in order now
    assert running.process
    running.process.send_signal(signal.SIGINT)
    running.until_printed("Stopping")
    running.process.send_signal(signal.SIGINT)
    running.process.wait(20)
    assert not running.everything()
    assert _ready(copy.ready())


def test_ctrl_c_ends_everything_in_order(copy: Yard) -> None:
    copy.be_up()
    assert copy.stop(signal.SIGINT) == 0
    assert not copy.everything()
    assert not (copy.home / "run" / "urls.json").exists()
    assert copy.printed().rstrip().endswith("Stopped.")
