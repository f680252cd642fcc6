"""Nodes and runners that are killed, lost, suspended or refused."""

import os
import signal
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import psutil
import pytest
from django.conf import settings
from django.db import connection

from jobs.models import Attempt, Checkpoint, InstallationSettings, Worker
from jobs.program import program_version
from jobs.queries.runs import events as event_log
from jobs.queries.search import batches
from tests.jobs.yard import SEARCH, Yard, make_yard
from tests.supervise.processes.conftest import NodeProcess
from tests.supervise.processes.test_node import FINAL, points, schedule_until, search

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(900)]


@pytest.fixture
def yard(transactional_db: None) -> Yard:
    table = Path(settings.TRAINYARD_ARTIFACTS) / "aa" / ("a" * 64)
    table.parent.mkdir(parents=True, exist_ok=True)
    table.write_bytes(b"x")
    return make_yard()


def alive(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


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


def is_stopped(process: psutil.Process) -> bool:
    return bool(process.status() == psutil.STATUS_STOPPED)


@contextmanager
def database_away() -> Iterator[None]:
    """Let no other process write until the block ends."""
    with closing(sqlite3.connect(connection.settings_dict["NAME"], isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        yield


SHORT_LEASE = {"TRAINYARD_NODE_LEASE_MARGIN": "13", "TRAINYARD_NODE_RENEW_PATIENCE": "0.5"}
"""A run is suspended two seconds after the last renewal that succeeded."""


def test_a_run_outlasts_an_outage_of_the_database_suspended(
    yard: Yard, nodes: Callable[..., NodeProcess]
) -> None:
    job = search(yard, epochs=200)
    node = nodes(**SHORT_LEASE)
    schedule_until(lambda: Checkpoint.objects.count() > 3, job)
    runners = node.runners
    with database_away():
        wait_for(lambda: all(map(is_stopped, runners)))
    schedule_until(lambda: job.state in FINAL, job)
    assert job.state == "completed"
    assert points(job) == {(t, e): list(range(1, 201)) for t in (1, 2) for e in (1, 2)}
    assert not Attempt.objects.filter(outcome="lost").exists()
    assert any("suspended" in str(warning) for warning in job.warnings)


def test_suspended_runners_die_with_their_node_and_the_next_node_resumes(
    yard: Yard, nodes: Callable[..., NodeProcess]
) -> None:
    job = search(yard, epochs=100)
    first = nodes(**SHORT_LEASE)
    schedule_until(lambda: Checkpoint.objects.count() > 3, job)
    runners = first.runners
    with database_away():
        wait_for(lambda: all(map(is_stopped, runners)))
        first.process.kill()
        first.process.wait()
        wait_for(lambda: not any(alive(runner.pid) for runner in runners))
    nodes(**SHORT_LEASE)
    schedule_until(lambda: job.state in FINAL, job)
    assert job.state == "completed"
    assert points(job) == {(t, e): list(range(1, 101)) for t in (1, 2) for e in (1, 2)}


def wait_for(condition: Callable[[], bool], seconds: float = 30.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_runner_killed_during_a_batch_loses_only_its_current_trial(
    yard: Yard, nodes: Callable[..., NodeProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "trials_in_target", lambda _search: 3)
    batch_search = SEARCH | {"parallel_trials": 1, "executions_per_trial": 1}
    job = yard.submit(search=batch_search, fit={"epochs": 50}, after={})
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
    schedule_until(lambda: any(process.pid != consumer for process in node.consumers), job)
    assert all(alive(pid) for pid in runners)
    assert not Attempt.objects.filter(outcome="lost").exists()


def test_a_worker_that_an_upgrade_forgot_ends_with_one_sentence_and_starts_no_more(
    yard: Yard, nodes: Callable[..., NodeProcess]
) -> None:
    job = search(yard, epochs=2000)
    node = nodes()
    schedule_until(lambda: Checkpoint.objects.exists(), job)
    runners = [runner.pid for runner in node.runners]
    InstallationSettings.objects.update_or_create(pk=1, defaults={"program": "0.0.1"})
    ends_with_both_versions(node)
    wait_for(lambda: not any(map(alive, runners)))
    # An end is a write to tables of another version.
    assert not Attempt.objects.exclude(state="running").exists()
    workers = Worker.objects.count()
    ends_with_both_versions(nodes())
    assert Worker.objects.count() == workers


def ends_with_both_versions(node: NodeProcess) -> None:
    assert node.process.wait(timeout=60) == 1
    last = node.log.read_text().splitlines()[-1]
    assert last.startswith(f"This program has version {program_version()}, and the database was prepared")
    assert "version 0.0.1" in last
