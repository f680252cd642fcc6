"""An upgrade to the next version and the way back, with a training that runs: docs/guide/14-upgrade.md."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from jobs import program
from jobs.queries import compatibility
from tests.flow.specs import spec
from tests.flow.yard import PROJECT, QUICK, RunningYard
from tests.ops.conftest import PATIENCE, ROOT, needs_postgres, new_database, wait_for
from tests.upgrade.next_version import MIGRATION, NUMBER, make_next_version
from webapp.demo.client import Client

pytestmark = pytest.mark.timeout(1200)

OWN = program.program_version()
LARGE = {"kind": "template", "template": "mlp", "args": {"units": 256, "layers": 3}}
ENDLESS = {"epochs": 100_000, "batch_size": 1, "seed": 3}


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=needs_postgres)])
def yard(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[RunningYard]:
    """An installation of this version with a training that has written checkpoints."""
    with ExitStack() as ends:
        variables = dict(QUICK)
        if request.param == "postgres":
            variables["TRAINYARD_DATABASE_URL"] = ends.enter_context(new_database())[0]
        yard = RunningYard(tmp_path / "home", **variables)
        ends.callback(yard.end)
        yard.start()
        yard.urls = yard.ready()
        yard.manage("adduser", "ada", "--admin")
        yard.tokens = {"ada": yard.manage("token", "ada", "--scopes", "read,write,admin").stdout.strip()}
        meet(yard)
        yard.ada.post("/projects", {"slug": PROJECT, "name": "Flow"})
        yard.until_ready("iris")
        yield yard


@pytest.fixture
def newer(tmp_path: Path) -> Path:
    return make_next_version(tmp_path / "next", newest=compatibility.own_schema())


def meet(yard: RunningYard) -> None:
    yard.ada = Client(yard.urls["web"], yard.tokens["ada"], "ada", patience=PATIENCE)


def start(yard: RunningYard, version: Path) -> None:
    yard.program = version
    yard.start()
    yard.urls = yard.ready()
    meet(yard)


def until_trained_further(yard: RunningYard, job: int, *, attempt: int) -> int:
    """Wait until an attempt trains; return the step of the checkpoint from which it resumed."""

    def trained() -> dict[str, int] | None:
        listed = yard.ada.get(f"/jobs/{job}/attempts")["items"]
        rows = [row for row in listed if row["number"] == attempt]
        if not rows or yard.job(job)["state"] != "running" or not has_metrics(yard, job):
            return None
        return rows[0] if attempt == 1 or rows[0]["resumed_from"] is not None else None

    begun = wait_for(trained, f"attempt {attempt} to train")
    return int(begun["resumed_from"] or 0)


def has_metrics(yard: RunningYard, job: int) -> bool:
    return bool(yard.ada.get(f"/jobs/{job}/metrics", names="val_loss")["series"])


def refused(yard: RunningYard, version: Path, *command: str) -> str:
    """Run a command of a version that must refuse the database; return its reason."""
    yard.program = version
    done = yard.manage(*command)
    assert done.returncode, done.stdout
    reason = done.stderr + done.stdout
    assert OWN in reason, reason
    assert NUMBER in reason, reason
    return reason


def test_an_upgrade_and_the_way_back_keep_a_running_training(
    yard: RunningYard, newer: Path, tmp_path: Path
) -> None:
    job = yard.submit(spec(fit=ENDLESS, model=LARGE))
    assert until_trained_further(yard, job, attempt=1) == 0
    assert back_up(yard, tmp_path / "running.tar")
    with forgotten_worker(yard, tmp_path / "forgotten.out") as worker:
        assert yard.stop() == 0
        saved = back_up(yard, tmp_path / "before.tar")

        # A part of the new version, before `up` has migrated.
        assert "up` or" in refused(yard, newer, "token", "ada", "--scopes", "read")
        assert "up` or" in refused(yard, newer, "worker", "--pool", "early")
        start(yard, newer)
        assert until_trained_further(yard, job, attempt=2) > 0
        assert MIGRATION in yard.manage("version").stdout

        # The worker that the upgrade forgot ends, and the old version starts no more.
        assert worker.wait(PATIENCE) != 0
    assert NUMBER in (tmp_path / "forgotten.out").read_text()
    assert "Nothing was changed" in refused(yard, ROOT, "worker", "--pool", "late")
    yard.program = newer
    assert yard.stop() == 0
    for command in (["up", "--port", "0", "--serving-port", "0"], ["web", "--port", "0"], ["scheduler"]):
        assert "Nothing was changed" in refused(yard, ROOT, *command)

    # The way back: the newer program restores, and the older one starts.
    assert len(list((yard.home / "backups").iterdir())) == 1
    yard.program = newer
    done = yard.manage("restore", str(saved), "--force")
    assert done.returncode == 0, done.stdout + done.stderr
    start(yard, ROOT)
    assert "only read" not in yard.printed()
    assert until_trained_further(yard, job, attempt=2) > 0
    assert "of this installation" in yard.manage("version").stdout
    assert yard.manage("audit", "verify").returncode == 0
    yard.ada.post(f"/jobs/{job}/stop")
    # By REST: `until_final` reads SQLite.
    wait_for(lambda: yard.job(job)["state"] in ("completed", "stopped"), "the training to stop")


def back_up(yard: RunningYard, target: Path) -> Path:
    """Make a backup, and read it again."""
    made = yard.manage("backup", str(target))
    assert made.returncode == 0, made.stderr
    assert yard.manage("backup", "--verify", str(target)).returncode == 0
    return target


@contextmanager
def forgotten_worker(yard: RunningYard, output: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Start a worker of this version apart from `up`, and wait until it is registered."""
    with output.open("wb") as file:
        worker = subprocess.Popen(
            [sys.executable, "manage.py", "worker", "--pool", "other", "--slots", "1"],
            cwd=ROOT,
            env=yard.environment,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        wait_for(lambda: b"is up with" in output.read_bytes(), "the worker to register")
        yield worker
    finally:
        worker.kill()
        worker.wait()
