"""Measures passes of the scheduler over queued jobs in the database, in a transaction that is rolled back."""

import statistics
import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from jobs.actions.runs import schedule
from jobs.models import Attempt, Job, Project, Reservation, User, Worker
from jobs.spec.checks.gpu_memory import KEEPS_RESERVED_GPUS

SLOTS_OF_WORKER = 8
PERSONS = 50
HELD, RESERVED = 60, 20
GB = 10**9


def make_rows(jobs: int, slots: int, *, gpus: bool = False) -> None:
    """Create queued jobs of many people, and busy workers.

    Args:
        jobs: how many jobs wait.
        slots: how many slots there are.
        gpus: whether each slot has a GPU; strangers hold 60 of them, and 20 more are reserved.
    """
    people = User.objects.bulk_create(User(username=f"bench-{number}") for number in range(PERSONS))
    project = Project.objects.create(slug="bench", name="Bench", created_by=people[0])
    now = timezone.now()
    lease = now + timedelta(hours=1)
    workers = Worker.objects.bulk_create(
        Worker(
            name=f"bench-{number}",
            host="h",
            pid=1,
            pool="default",
            slots=SLOTS_OF_WORKER,
            lease_until=lease,
            devices=_gpus(held=number < HELD) if gpus else [],
            info={KEEPS_RESERVED_GPUS: True},
        )
        for number in range(slots // SLOTS_OF_WORKER)
    )
    rows = Job.objects.bulk_create(
        Job(
            kind="train",
            project=project,
            created_by=people[number % PERSONS],
            state="queued",
            queued=now - timedelta(seconds=number % 3600),
            priority=(20, 50, 80)[number % 3],
            slots=(1, 1, 1, 2, 4, 8)[number % 6],
        )
        for number in range(jobs + len(workers))
    )
    if gpus:
        _reserve(workers, people)
    running = rows[jobs:]
    Job.objects.filter(pk__in=[job.pk for job in running]).update(state="running")
    Attempt.objects.bulk_create(
        Attempt(
            job=job,
            number=1,
            worker=worker,
            slots=SLOTS_OF_WORKER,
            state="running",
            assigned=now,
            claimed=now,
            lease_until=lease,
        )
        for job, worker in zip(running, workers, strict=True)
    )


def _gpus(*, held: bool) -> list[dict[str, Any]]:
    gpus: list[dict[str, Any]] = [
        {"name": f"gpu:{number}", "kind": "H100", "memory_bytes": 80 * GB}
        for number in range(SLOTS_OF_WORKER)
    ]
    gpus[0] |= {"others_bytes": 79 * GB} if held else {}
    return gpus


def _reserve(workers: Sequence[Worker], people: Sequence[User]) -> None:
    now = timezone.now()
    Reservation.objects.bulk_create(
        Reservation(
            pool="default",
            worker=workers[number].name,
            slots=1,
            gpus=[f"gpu:{7 - number % 2}"],
            begins=now + timedelta(hours=number % 2),
            ends=now + timedelta(hours=2),
            person=people[number],
            created_by=people[0],
        )
        for number in range(RESERVED)
    )


def measure_passes(jobs: int, slots: int, *, gpus: bool = False) -> None:
    """Print the time and the statements of the first pass, which writes reasons, and of later ones."""
    with transaction.atomic():
        make_rows(jobs, slots, gpus=gpus)
        joined = f", with GPUs: {HELD} held, {RESERVED} reserved" if gpus else ""
        print(f"\n{connection.vendor}: {jobs:,} queued jobs, all {slots:,} slots taken{joined}\n")
        print("| pass | wall, ms | CPU, ms | statements |\n|---|---|---|---|")
        _print_pass("first, writes reasons", 1)
        _print_pass("further", 5)
        Attempt.objects.filter(pk=Attempt.objects.order_by("pk").values("pk")[:1]).delete()
        _print_pass("after a worker became free", 1)
        transaction.set_rollback(True)


def _print_pass(name: str, repeats: int) -> None:
    walls, cpus, count = [], [], 0
    for _ in range(repeats):
        with CaptureQueriesContext(connection) as queries:
            wall, cpu = time.perf_counter(), time.process_time()
            schedule.place_jobs()
            walls.append(1000 * (time.perf_counter() - wall))
            cpus.append(1000 * (time.process_time() - cpu))
        count = len(queries)
    print(f"| {name} | {statistics.median(walls):.0f} | {statistics.median(cpus):.0f} | {count} |")
