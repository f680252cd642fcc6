"""The node as a process: a real database, real signals, fake runners."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from django.conf import settings
from django.db import connection

from jobs import scheduler
from jobs.actions.runs import control
from jobs.models import Attempt, Checkpoint, Job, Worker
from jobs.queries.runs import events as event_log
from jobs.queries.runs import metrics
from jobs.queries.search import batches
from tests.jobs.yard import SEARCH, Yard, make_yard, suggest_from_grid
from webapp.ops.parent_death import argv_dying_with_parent

ROOT = Path(__file__).resolve().parents[3]
CHECK_INTERVAL, SCHEDULER_INTERVAL = 0.05, 0.25
"""Seconds between two checks of a condition, and between two runs of the scheduler."""
FINAL = ("completed", "failed", "stopped")

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(900)]


class NodeProcess:
    """`python -m workers.node` with short intervals and fake runners."""

    def __init__(self, log: Path, **environment: str) -> None:
        self.log = log
        self.process = subprocess.Popen(
            argv_dying_with_parent([sys.executable, "-m", "workers.node", "--slots", "2", "--name", "node"]),
            cwd=ROOT,
            env=os.environ
            | {
                "DJANGO_SETTINGS_MODULE": "webapp.settings.test",
                "TRAINYARD_DATABASE_URL": f"sqlite:///{connection.settings_dict['NAME']}",
                "TRAINYARD_REDIS_URL": "unix:///nowhere/valkey.sock",
                "TRAINYARD_RUNNER_MODULE": "tests.supervise.fake_runner",
                "TRAINYARD_FORK_RUNNERS": "0",
                "TRAINYARD_MIN_FREE_BYTES": "1000",
                "TRAINYARD_NODE_POLL": "0.1",
                "TRAINYARD_NODE_RENEW": "0.2",
                "TRAINYARD_NODE_WATCH": "0.05",
            }
            | environment,
            stdout=log.open("ab"),
            stderr=subprocess.STDOUT,
        )

    @property
    def runners(self) -> list[psutil.Process]:
        children = psutil.Process(self.process.pid).children(recursive=True)
        return [child for child in children if "tests.supervise.fake_runner" in _argv(child)]

    @property
    def consumers(self) -> list[psutil.Process]:
        children = psutil.Process(self.process.pid).children()
        return [child for child in children if "celery" in _argv(child)]

    def end(self) -> None:
        self.process.kill()
        self.process.wait()


def _argv(process: psutil.Process) -> list[str]:
    try:
        return list(process.cmdline())
    except psutil.Error:
        return []


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[Callable[..., NodeProcess]]:
    started: list[NodeProcess] = []

    def start(**environment: str) -> NodeProcess:
        started.append(NodeProcess(tmp_path / "node.log", **environment))
        return started[-1]

    yield start
    for node in started:
        node.end()
    sys.stdout.write((tmp_path / "node.log").read_text())


@pytest.fixture
def yard(transactional_db: None) -> Yard:
    table = Path(settings.TRAINYARD_ARTIFACTS) / "aa" / ("a" * 64)
    table.parent.mkdir(parents=True, exist_ok=True)
    table.write_bytes(b"x")
    return make_yard()


def search(yard: Yard, *, epochs: int) -> Job:
    return yard.submit(search=SEARCH | {"max_trials": 2}, fit={"epochs": epochs}, after={})


def schedule_until(condition: Callable[[], object], job: Job, seconds: float = 200.0) -> None:
    """Run the scheduler until a condition holds."""
    deadline = time.monotonic() + seconds
    due = 0.0
    while not condition():
        assert time.monotonic() < deadline, "it never became true"
        if time.monotonic() >= due:
            run_scheduler(job)
            due = time.monotonic() + SCHEDULER_INTERVAL
        time.sleep(CHECK_INTERVAL)


def run_scheduler(job: Job) -> None:
    scheduler.tick()
    scheduler.sweep()
    job.refresh_from_db()
    if job.state not in FINAL:
        suggest_from_grid(job)


def points(job: Job) -> dict[tuple[int, int], list[float | None]]:
    """Return x of every point of the losses, by trial and execution, as a page would read them."""
    found = metrics.read_series(job, names=["loss"])
    return {(s["trial"] or 0, s["execution"] or 0): [point[0] for point in s["points"]] for s in found}


def alive(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def test_a_search_runs_to_its_end(yard: Yard, nodes: Callable[..., NodeProcess]) -> None:
    job = search(yard, epochs=10)
    nodes()
    schedule_until(lambda: job.state in FINAL, job)
    assert job.state == "completed"
    assert points(job) == {(t, e): list(range(1, 11)) for t in (1, 2) for e in (1, 2)}


def test_runners_die_with_their_node_and_the_next_node_resumes(
    yard: Yard, nodes: Callable[..., NodeProcess]
) -> None:
    job = search(yard, epochs=100)
    first = nodes()
    schedule_until(lambda: Checkpoint.objects.count() > 3, job)
    runners = [runner.pid for runner in first.runners]
    assert runners
    first.process.kill()
    first.process.wait()
    deadline = time.monotonic() + 20
    while any(alive(pid) for pid in runners):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    nodes()
    schedule_until(lambda: job.state in FINAL, job)
    assert job.state == "completed"
    assert points(job) == {(t, e): list(range(1, 101)) for t in (1, 2) for e in (1, 2)}
    causes = {(attempt.error or {}).get("code") for attempt in Attempt.objects.filter(outcome="lost")}
    # On a slow machine the leases expire before the next node reports its predecessor's death.
    assert causes & {"worker_died", "lease_expired"}


def test_a_runner_killed_during_a_batch_loses_only_its_current_trial(
    yard: Yard, nodes: Callable[..., NodeProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "trials_in_target", lambda _search: 3)
    wanted = SEARCH | {"parallel_trials": 1, "executions_per_trial": 1}
    job = yard.submit(search=wanted, fit={"epochs": 50}, after={})
    node = nodes()
    at = job.trials.filter(number=2, state="running", checkpoints__isnull=False)
    schedule_until(at.exists, job)
    (attempt,) = Attempt.objects.exclude(state="ended")
    assert list(attempt.trials.order_by("number").values_list("number", flat=True)) == [1, 2, 3]
    for runner in node.runners:
        runner.kill()
    schedule_until(lambda: job.state in FINAL, job)
    assert job.state == "completed"
    assert dict(job.trials.values_list("number", "restarts")) == {1: 0, 2: 1, 3: 0, 4: 0}
    assert job.attempts.filter(outcome="lost").get() == attempt
    finals = [e["trial"] for e in event_log.read_events(job.pk, after=0, limit=10_000).items if is_end(e)]
    assert finals == [1, 2, 3, 4]
    assert points(job) == {(trial, 1): list(range(1, 51)) for trial in (1, 2, 3, 4)}
    again = job.series.filter(trial__number=2, name="loss").order_by("attempt").last()
    assert again is not None
    assert again.count < 50, "it resumed from its checkpoint"


def is_end(event: dict[str, object]) -> bool:
    return event["type"] == "trial" and event["state"] == "completed"


def test_a_node_that_shuts_down_ends_its_runs_without_counting_a_restart(
    yard: Yard, nodes: Callable[..., NodeProcess]
) -> None:
    job = search(yard, epochs=400)
    node = nodes()
    schedule_until(lambda: Checkpoint.objects.exists(), job)
    node.process.terminate()
    assert node.process.wait(timeout=90) == 0
    assert Worker.objects.get().state == "gone"
    assert {a.error["code"] for a in Attempt.objects.filter(outcome="lost") if a.error} == {"drained"}
    assert not job.trials.exclude(restarts=0).exists()


def test_a_node_whose_worker_was_declared_lost_ends_its_runs_and_registers_again(
    yard: Yard, nodes: Callable[..., NodeProcess]
) -> None:
    job = search(yard, epochs=2000)
    node = nodes()
    schedule_until(lambda: Checkpoint.objects.exists(), job)
    old = {runner.pid for runner in node.runners}
    assert old
    Worker.objects.update(state="lost")
    schedule_until(lambda: Worker.objects.filter(state="up").exists(), job)
    assert not any(alive(pid) for pid in old)


def test_pause_and_resume_keep_every_point(yard: Yard, nodes: Callable[..., NodeProcess]) -> None:
    job = search(yard, epochs=200)
    nodes()
    schedule_until(lambda: Checkpoint.objects.exists(), job)
    control.pause(job, by=yard.owner)
    schedule_until(lambda: job.state == "paused", job)
    assert not Attempt.objects.exclude(state="ended").exists()
    control.resume(job, by=yard.owner)
    schedule_until(lambda: job.state in FINAL, job)
    assert job.state == "completed"
    assert points(job) == {(t, e): list(range(1, 201)) for t in (1, 2) for e in (1, 2)}


def test_on_a_nearly_full_disk_no_new_work_starts_and_the_reason_is_shown(
    yard: Yard, nodes: Callable[..., NodeProcess]
) -> None:
    job = search(yard, epochs=3)
    nodes(TRAINYARD_MIN_FREE_BYTES=str(2**60))
    schedule_until(lambda: "disk" in job.why_waiting, job)
    assert not Attempt.objects.exists()


def test_a_suspended_consumer_is_replaced_without_affecting_runners(
    yard: Yard, nodes: Callable[..., NodeProcess], broker_url: str
) -> None:
    job = search(yard, epochs=8000)  # no runner ends before the test does
    node = nodes(TRAINYARD_REDIS_URL=broker_url, TRAINYARD_NODE_CANARY="2")
    schedule_until(lambda: Checkpoint.objects.exists() and node.consumers, job)
    worker = Worker.objects.get()

    def receives() -> bool:
        worker.refresh_from_db()
        return bool(worker.info.get("consumer", {}).get("proven"))

    schedule_until(receives, job)
    consumer, runners = worker.info["consumer"]["pid"], [runner.pid for runner in node.runners]
    assert runners
    os.kill(consumer, signal.SIGSTOP)
    schedule_until(lambda: any(found.pid != consumer for found in node.consumers), job)
    assert all(alive(pid) for pid in runners)
    assert not Attempt.objects.filter(outcome="lost").exists()
