"""Workers that end by themselves, and names of workers: real processes with fake runners."""

import signal
from collections.abc import Callable

import pytest
from django.conf import settings

from jobs import scheduler
from jobs.models import Attempt, Checkpoint, Worker
from tests.jobs.yard import Yard
from tests.supervise.processes.conftest import NodeProcess
from tests.supervise.processes.test_node import FINAL, points, schedule_until, search, yard

__all__ = ["yard"]

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(900)]
SHORT = {"TRAINYARD_NODE_GRACE": "3", "TRAINYARD_NODE_UPLOAD_GRACE": "0"}
"""Ends take at most 18 s."""
LIFE = ("--max-life", "60s")


def newest_epochs() -> dict[tuple[int | None, int | None], int]:
    """Return the epoch of the newest checkpoint of each training."""
    rows = Checkpoint.objects.order_by("pk").values_list("trial", "execution", "epoch")
    return {(trial, execution): epoch for trial, execution, epoch in rows}


def test_a_worker_without_work_ends_with_status_0_and_takes_nothing_new(
    yard: Yard, nodes: Callable[..., NodeProcess]
) -> None:
    job = search(yard, epochs=10)
    node = nodes("--idle-exit", "5s", "--label", "gpu=h200")
    schedule_until(lambda: job.state in FINAL, job)
    assert Worker.objects.get().labels == {"gpu": "h200"}
    assert node.process.wait(timeout=90) == 0
    assert job.state == "completed"
    assert Worker.objects.get().state == "gone"
    assert "It ran nothing for 5 s (--idle-exit). The worker drains and ends." in node.log.read_text()


def test_at_the_end_of_its_life_a_worker_gives_its_runs_to_another_without_counting_a_restart(
    yard: Yard, nodes: Callable[..., NodeProcess]
) -> None:
    job = search(yard, epochs=20_000)
    old = nodes(*LIFE, **SHORT)
    schedule_until(lambda: old.process.poll() is not None, job)
    assert old.process.returncode == 0
    assert Checkpoint.objects.exists()
    lost = Attempt.objects.filter(outcome="lost")
    assert {attempt.error["code"] for attempt in lost if attempt.error} == {"drained"}
    assert not job.trials.exclude(restarts=0).exists()
    last, reached = Checkpoint.objects.latest("pk"), newest_epochs()
    nodes(name="other")
    further = Checkpoint.objects.filter(pk__gt=last.pk).order_by("pk")
    schedule_until(further.exists, job)
    first = further[0]
    assert first.epoch > reached[first.trial_id, first.execution], "it continues from the last checkpoint"


def test_a_worker_that_is_killed_while_it_ends_loses_nothing(
    yard: Yard, nodes: Callable[..., NodeProcess]
) -> None:
    job = search(yard, epochs=400)
    old = nodes(*LIFE, **SHORT)
    schedule_until(lambda: "The worker drains and ends." in old.log.read_text(), job)
    old.process.send_signal(signal.SIGKILL)
    assert old.process.wait(timeout=60) == -9
    nodes()  # the same name, at once: the dead worker's attempts end when it starts
    schedule_until(lambda: job.state in FINAL, job)
    assert job.state == "completed"
    assert points(job) == {(t, e): list(range(1, 401)) for t in (1, 2) for e in (1, 2)}


def test_a_worker_whose_gpu_was_asked_for_and_is_not_there_takes_no_work_and_shows_why(
    yard: Yard, nodes: Callable[..., NodeProcess]
) -> None:
    job = yard.submit()
    node = nodes(JAX_PLATFORMS="cuda", CUDA_VISIBLE_DEVICES="GPU-none")
    schedule_until(lambda: "JAX_PLATFORMS=cuda asks for a GPU." in job.why_waiting, job)
    assert job.why_waiting.startswith("Worker node of pool default takes no work: JAX_PLATFORMS=cuda")
    assert "JAX_PLATFORMS=cuda asks for a GPU." in Worker.objects.get().info["refuses"]
    assert "JAX_PLATFORMS=cuda asks for a GPU." in node.log.read_text()
    assert not Attempt.objects.exists()
    node.end()
    nodes(JAX_PLATFORMS="cpu")
    schedule_until(Attempt.objects.exists, job)


def test_a_second_worker_with_a_live_name_is_refused_and_a_killed_ones_name_is_taken_over(
    yard: Yard, nodes: Callable[..., NodeProcess], tmp_path_factory: pytest.TempPathFactory
) -> None:
    job = search(yard, epochs=10)
    first = nodes(name="oak")
    schedule_until(lambda: Worker.objects.filter(state="up").exists(), job)
    # Another home, as on another machine: the lock in the home is another one.
    home, artifacts = str(tmp_path_factory.mktemp("home")), str(settings.TRAINYARD_ARTIFACTS)
    elsewhere = {"TRAINYARD_TEST_HOME": home, "TRAINYARD_ARTIFACTS": artifacts}
    second = nodes("--label", "a=b", name="oak", **elsewhere)
    assert second.process.wait(timeout=120) == 1
    assert "A worker named 'oak' already runs on " in second.log.read_text()
    assert Worker.objects.get().labels == {}, "the refused worker wrote nothing"
    first.process.kill()
    first.process.wait()
    third = nodes("--label", "a=c", name="oak", **elsewhere)
    schedule_until(lambda: Worker.objects.filter(state="up", labels={"a": "c"}).exists(), job)
    assert third.process.poll() is None
    assert list(Worker.objects.order_by("pk").values_list("name", "state")) == [
        ("oak", "lost"),
        ("oak", "up"),
    ]
    scheduler.sweep()
