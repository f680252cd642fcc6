"""The commands of docs/guide/16-slurm.md, with programs in place of Slurm's that run a job at once."""

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.conf import settings
from django.db import connection

from jobs.models import Job, Worker
from tests.jobs.yard import SEARCH, Yard, make_yard
from tests.ops.guide_commands import ROOT, command
from tests.supervise.processes.test_node import FINAL, schedule_until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(900)]
PROGRAMS = {
    "sbatch": 'for script; do :; done; id=$((1000 + $(ls "$SLURM_STUB" | wc -l)))\n'
    'SLURM_JOB_ID=$id bash "$script" > "$SLURM_STUB/../$id.log" 2>&1 < /dev/null &\n'
    'echo $! > "$SLURM_STUB/$id"; echo "Submitted batch job $id"',
    "squeue": 'case "$*" in *PENDING*) exit 0;; esac\n'
    'for file in "$SLURM_STUB"/*; do kill -0 "$(cat "$file")" 2> /dev/null && basename "$file"; done; true',
    "scancel": 'for file in "$SLURM_STUB"/*; do kill -TERM "$(cat "$file")" || true; done',
    "srun": 'exec "$@"',
}


class Cluster:
    """Slurm's programs, whose jobs run on this machine at once.

    Attributes:
        variables: those of a shell that uses them.
    """

    def __init__(self, root: Path) -> None:
        self._jobs = root / "jobs"
        self._jobs.mkdir()
        programs = root / "bin"
        programs.mkdir()
        for name, body in PROGRAMS.items():
            (programs / name).write_text(f"#!/bin/sh\n{body}\n")
            (programs / name).chmod(0o755)
        of_worker = {
            "DJANGO_SETTINGS_MODULE": "webapp.settings.test",
            "TRAINYARD_DATABASE_URL": f"sqlite:///{connection.settings_dict['NAME']}",
            "TRAINYARD_REDIS_URL": "unix:///nowhere/valkey.sock",
            "TRAINYARD_HOME": str(settings.TRAINYARD_HOME),
            "TRAINYARD_RUNNER_MODULE": "tests.supervise.fake_runner",
            "TRAINYARD_FORK_RUNNERS": "0",
            "TRAINYARD_MIN_FREE_BYTES": "1000",
            "TRAINYARD_NODE_POLL": "0.1",
        }
        (root / "worker.env").write_text("".join(f"{name}='{value}'\n" for name, value in of_worker.items()))
        self.variables = {
            **of_worker,
            "PATH": f"{programs}:{os.environ['PATH']}",
            "SLURM_STUB": str(self._jobs),
            "WORKER_FOLDER": str(ROOT),
            "WORKER_SETTINGS": str(root / "worker.env"),
        }

    @property
    def submitted(self) -> int:
        return len(list(self._jobs.iterdir()))

    def is_over(self) -> bool:
        """Return whether all jobs have ended."""
        return not any(Path(f"/proc/{file.read_text().strip()}").exists() for file in self._jobs.iterdir())

    def kill(self) -> None:
        for file in self._jobs.iterdir():
            try:
                os.kill(int(file.read_text()), signal.SIGKILL)
            except ProcessLookupError:
                continue


@pytest.fixture
def installation(transactional_db: None) -> Yard:
    table = Path(settings.TRAINYARD_ARTIFACTS) / "aa" / ("a" * 64)
    table.parent.mkdir(parents=True, exist_ok=True)
    table.write_bytes(b"x")
    return make_yard()


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    slurm = Cluster(tmp_path)
    for name, value in slurm.variables.items():
        monkeypatch.setenv(name, value)
    yield slurm
    slurm.kill()


def wait_until(condition: Callable[[], object], seconds: float = 120.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never became true"
        time.sleep(0.1)


def submit(installation: Yard) -> Job:
    resources = {"pool": "gpu"}
    return installation.submit(search=SEARCH | {"max_trials": 2}, fit={"epochs": 5}, resources=resources)


def test_workers_are_submitted_while_jobs_wait_and_end_with_a_signal(
    installation: Yard, cluster: Cluster
) -> None:
    start = command(16, "start-workers.sh gpu")
    assert start.run().returncode == 0
    assert cluster.submitted == 0, "nothing waits"
    job = submit(installation)
    printed = command(16, "manage.py queue").run()
    assert json.loads(printed.stdout)["items"][0]["queued"] == 1
    answer = start.run()
    assert answer.stdout.splitlines() == ["Submitted batch job 1000"], answer.stderr
    schedule_until(lambda: job.state in FINAL, job)
    assert job.state == "completed"
    worker = Worker.objects.get(state="up")
    assert (worker.name, worker.pool, worker.slots) == ("slurm-1000", "gpu", 1)
    assert worker.info["max_life_seconds"] == 235 * 60
    assert start.run().stdout == "", "nothing waits any more"
    assert command(16, "scancel").run().returncode == 0
    wait_until(cluster.is_over)
    assert Worker.objects.get().state == "gone"


def test_no_more_workers_are_submitted_than_may_be_there(installation: Yard, cluster: Cluster) -> None:
    for _ in range(3):
        submit(installation)
    answer = command(16, "start-workers.sh gpu").run({"gpu 8": "gpu 2 gpu=h200"})
    assert cluster.submitted == 2, answer.stderr
    wait_until(lambda: Worker.objects.filter(state="up", labels={"gpu": "h200"}).count() == 2)


def test_a_submitted_worker_ends_by_itself_when_nothing_waits(installation: Yard, cluster: Cluster) -> None:
    answer = command(16, "sbatch deploy").run(WORKER_IDLE="2s")
    assert "Submitted batch job 1000" in answer.stdout
    wait_until(lambda: Worker.objects.exists() and cluster.is_over())
    assert Worker.objects.get().state == "gone"


def test_a_worker_has_the_name_the_labels_and_the_limits_that_it_was_given(
    installation: Yard, cluster: Cluster, tmp_path: Path
) -> None:
    started = command(16, "manage.py worker --name").start(log=tmp_path / "log")
    try:
        wait_until(lambda: Worker.objects.filter(state="up").exists())
        worker = Worker.objects.get()
        assert (worker.name, worker.pool, worker.labels) == ("gpu-1", "gpu", {"gpu": "h200"})
        assert (worker.info["idle_exit_seconds"], worker.info["max_life_seconds"]) == (600, 14_400)
        started.terminate()
        assert started.wait(timeout=60) == 0
    finally:
        started.kill()
