"""The node as a process: a real database, real signals, fake runners."""

import signal
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from django.conf import settings

from jobs import scheduler
from jobs.actions.runs import control
from jobs.models import Attempt, Checkpoint, Job, Worker
from jobs.queries.runs import metrics
from tests.jobs.yard import SEARCH, Yard, make_yard, suggest_from_grid
from tests.supervise.processes.conftest import NodeProcess

CHECK_INTERVAL, SCHEDULER_INTERVAL = 0.05, 0.25
"""Seconds between two checks of a condition, and between two runs of the scheduler."""
FINAL = ("completed", "failed", "stopped")

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(900)]


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
    """Return every loss point's x, by trial and execution, as a page would read them."""
    series = metrics.read_series(job, names=["loss"])
    return {(s["trial"] or 0, s["execution"] or 0): [point[0] for point in s["points"]] for s in series}


def test_a_search_runs_to_its_end(yard: Yard, nodes: Callable[..., NodeProcess]) -> None:
    job = search(yard, epochs=10)
    nodes()
    schedule_until(lambda: job.state in FINAL, job)
    assert job.state == "completed"
    assert points(job) == {(t, e): list(range(1, 11)) for t in (1, 2) for e in (1, 2)}


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


def test_a_signal_to_all_processes_lets_runs_write_their_checkpoints_and_nothing_comes_back(
    yard: Yard, nodes: Callable[..., NodeProcess]
) -> None:
    job = search(yard, epochs=2000)
    node = nodes()
    schedule_until(lambda: Checkpoint.objects.exists(), job)
    count = Attempt.objects.count()
    service = [*psutil.Process(node.process.pid).children(recursive=True), psutil.Process(node.process.pid)]
    # As `scancel` and service managers do; the runners are the first, which is the worst order. Then the
    # supervisor of the node, which got it as well, sends it again.
    for process in [*service, service[-1]]:
        process.send_signal(signal.SIGTERM)
    deadline = time.monotonic() + 90
    while node.process.poll() is None:
        assert time.monotonic() < deadline
        run_scheduler(job)
        time.sleep(CHECK_INTERVAL)
    assert node.process.returncode == 0
    assert Worker.objects.get().state == "gone"
    lost = Attempt.objects.filter(outcome="lost")
    assert {attempt.error["code"] for attempt in lost if attempt.error} == {"drained"}
    assert not job.trials.exclude(restarts=0).exists()
    assert Attempt.objects.count() == count, "nothing was placed on the worker that drains"


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
