"""The length and the age of each pool's queue."""

import json
import re
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from jobs.actions.runs import control, pipeline, schedule, workers
from jobs.answers.runs.pool_queues import PoolQueueOut
from jobs.models import Job
from jobs.queries.runs.pool_queues import pool_queues
from tests.jobs.yard import SEARCH, PretendWorker, Yard, suggest_from_grid


def queue_of(name: str) -> PoolQueueOut:
    (queue,) = pool_queues(name)
    return queue


def asking(pool: str, slots: int = 1, **labels: str) -> dict[str, Any]:
    return {"resources": {"pool": pool, "slots": slots, "labels": labels}}


def test_the_queue_of_a_pool_has_its_length_its_age_and_the_labels_that_are_asked_for(
    installation: Yard,
) -> None:
    old = installation.submit(**asking("gpu"))
    Job.objects.filter(pk=old.pk).update(queued=timezone.now() - timedelta(seconds=90))
    installation.submit(**asking("gpu", slots=2, gpu="h200"))
    installation.submit(**asking("gpu", slots=4, gpu="h200"))
    queue = queue_of("gpu")
    assert (queue.queued, queue.slots_wanted, queue.workers, queue.slots) == (3, 7, 0, 0)
    assert 90 <= (queue.oldest_seconds or 0) < 120
    plain, labelled = queue.labels
    assert (plain.labels, plain.queued, plain.largest) == ({}, 1, 1)
    assert (labelled.labels, labelled.queued, labelled.slots_wanted, labelled.largest) == (
        {"gpu": "h200"}, 2, 6, 4,
    )  # fmt: skip
    assert (labelled.oldest_seconds or 0) < 60


def test_slots_of_workers_that_take_no_work_are_not_free(installation: Yard) -> None:
    up = PretendWorker(name="up", slots=3, pool="gpu")
    draining = PretendWorker(name="draining", slots=2, pool="gpu")
    PretendWorker(name="refusing", slots=8, pool="gpu", info={"refuses": "no driver"})
    workers.drain(draining.row, by=installation.owner)
    installation.submit(**asking("gpu"))
    schedule.place_jobs()
    assert len(up.claim_all()) == 1
    queue = queue_of("gpu")
    assert (queue.queued, queue.slots, queue.busy, queue.free) == (0, 3, 1, 2)
    assert (queue.workers, queue.draining, queue.refusing) == (1, 1, 1)
    assert queue.oldest_seconds is None


def test_trials_count_up_to_the_limit_of_their_search(installation: Yard) -> None:
    search = installation.submit(search=SEARCH | {"parallel_trials": 2}, **asking("gpu"))
    assert queue_of("gpu").queued == 1, "only a worker chooses its first trials"
    PretendWorker(slots=4, pool="gpu")
    pipeline.advance_all()
    suggest_from_grid(search)
    waiting_trials = search.trials.waiting().count()
    assert queue_of("gpu").queued == min(2, waiting_trials)
    schedule.place_jobs()
    assert queue_of("gpu").queued == 0
    control.pause(search, by=installation.owner)
    assert queue_of("gpu").queued == 0


def test_an_ended_job_does_not_wait(installation: Yard) -> None:
    control.stop(installation.submit(), by=installation.owner)
    assert pool_queues() == []


def test_the_number_of_statements_does_not_depend_on_the_queue(installation: Yard) -> None:
    def statements() -> int:
        with CaptureQueriesContext(connection) as queries:
            pool_queues()
        return len(queries)

    installation.submit(search=SEARCH, **asking("pool-0"))
    few = statements()
    for number in range(3):
        installation.submit(**asking(f"pool-{number}", site=str(number)))
        installation.submit(search=SEARCH, **asking(f"pool-{number}"))
        PretendWorker(name=f"worker-{number}", pool=f"pool-{number}")
    assert statements() == few <= 6, "attempts, jobs, trials, workers, pools; on PostgreSQL also the clock"
    assert len(pool_queues()) == 3


def test_the_command_prints_the_queue_for_people_and_for_programs(installation: Yard) -> None:
    installation.submit(**asking("gpu", gpu="h200"))
    PretendWorker(slots=2)
    printed = StringIO()
    call_command("queue", stdout=printed)
    lines = re.sub(r"up to [0-9.]+ s", "up to 0 s", printed.getvalue()).splitlines()
    assert lines == [
        "default: 0 waiting, 2 of 2 slots free, 1 worker",
        "gpu: 1 waiting for up to 0 s, 0 of 0 slots free, 0 workers",
        "  1 asks for gpu=h200",
    ]
    printed = StringIO()
    call_command("queue", pool="gpi", stdout=printed)
    assert printed.getvalue() == "gpi: nothing waits in this pool, and it has no worker.\n"
    printed = StringIO()
    call_command("queue", pool="none", json=True, stdout=printed)
    (item,) = json.loads(printed.getvalue())["items"]
    assert (item["pool"], item["queued"], item["oldest_seconds"], item["labels"]) == ("none", 0, None, [])
    with pytest.raises(CommandError, match="'GPU 1' is not the name of a pool"):
        call_command("queue", "--pool", "GPU 1")
