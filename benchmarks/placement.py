"""Measures one decision about placements, compared with the rules that it replaced.

    python -m benchmarks.placement [--jobs 10000] [--slots 1000] [--repeats 9]

CPU time in milliseconds, medians. The former rules are priority, then age, with the same blocking; they chose
the freest worker by a look at each. `--database` also measures a whole pass over as many queued jobs in the
database of the settings, in a transaction that is rolled back.
"""

import argparse
import os
import random
import statistics
import time
from collections.abc import Callable, Sequence

from benchmarks.placement_gpus import join_gpus
from jobs.placement.decision import decide
from jobs.placement.state import Limit, Machine, Reservation, Running, State, Work

NOW = 1_000_000.0
SLOTS_OF_MACHINE = 8
PERSONS = 50


def make_state(
    jobs: int, slots: int, *, free: bool, reservations: int = 0, sizes: Sequence[int] = (1, 1, 1, 2, 4, 8)
) -> State:
    """Return a state with so many waiting jobs.

    Args:
        jobs: how many jobs wait.
        slots: how many slots there are, eight on each worker.
        free: whether all slots are free, so that each is given out; else all are taken.
        reservations: how many reservations the pool has.
        sizes: of these, the jobs need some number of slots.
    """
    rng = random.Random(0)
    machines = [
        Machine(key, f"w{key}", "default", SLOTS_OF_MACHINE, SLOTS_OF_MACHINE if free else 0)
        for key in range(slots // SLOTS_OF_MACHINE)
    ]
    waiting = [
        Work(
            key=job,
            job=job,
            person=rng.randrange(PERSONS),
            project=rng.randrange(10),
            priority=rng.choice((20, 50, 50, 50, 80)),
            queued=NOW - rng.random() * 3600,
            number=0,
            slots=(wanted := rng.choice(sizes)),
            pool="default",
            needs=wanted,
        )
        for job in range(jobs)
    ]
    running = (
        []
        if free
        else [
            Running(key, key, rng.randrange(PERSONS), 0, machine.key, SLOTS_OF_MACHINE, 20, NOW, resumes=True)
            for key, machine in enumerate(machines)
        ]
    )
    return State(
        now=NOW,
        waiting=waiting,
        machines=machines,
        fitting={wanted: [machine.key for machine in machines] for wanted in (1, 2, 4, 8)},
        running=running,
        reservations=[
            Reservation(key, "default", f"w{key}", 4, NOW + 3600, NOW + 7200, key % PERSONS, None)
            for key in range(reservations)
        ],
        of_person={person: Limit(200, f"p{person}") for person in range(PERSONS)},
        of_project={project: Limit(900, f"p{project}") for project in range(10)},
        used={("default", person): rng.random() * 1e6 for person in range(PERSONS)},
        preempting=frozenset({"default"}),
    )


def decide_formerly(state: State) -> int:
    """Place by priority, then age, looking at each worker for each job. Return how many were placed."""
    free = {machine.key: machine.free for machine in state.machines}
    blocked: dict[int, Work] = {}
    reasons: dict[int, str] = {}
    placed = 0
    for work in sorted(state.waiting, key=lambda one: (-one.priority, one.queued, one.job, one.number)):
        suitable = [machine for machine in state.machines if machine.slots >= work.slots]
        open_ = (machine for machine in suitable if machine.key not in blocked)
        freest = max(open_, key=lambda machine: free[machine.key], default=None)
        if freest is not None and free[freest.key] >= work.slots:
            free[freest.key] -= work.slots
            placed += 1
        elif all(machine.key in blocked for machine in suitable):
            reasons[work.key] = f"Job {blocked[suitable[0].key].job} is ahead of it."
        else:
            reasons[work.key] = f"It needs {work.slots} slots."
            for machine in suitable:
                blocked.setdefault(machine.key, work)
    return placed


def median_ms(call: Callable[[], object], repeats: int) -> float:
    """Return the median CPU time of a call, in milliseconds."""
    times = []
    for _ in range(repeats):
        began = time.process_time()
        call()
        times.append(1000 * (time.process_time() - began))
    return statistics.median(times)


def measure(name: str, state: State, repeats: int) -> None:
    """Print a line of the table."""
    now = median_ms(lambda: decide(state), repeats)
    formerly = median_ms(lambda: decide_formerly(state), min(repeats, 3))
    placed = len(decide(state).placements)
    print(f"| {name} | {placed:,} | {now:.0f} | {formerly:.0f} | {now / formerly:.2f} |")


def measure_gpus(jobs: int, slots: int, repeats: int) -> None:
    """Print a table of decisions with the GPUs joined."""
    free, boxes = make_state(jobs, slots, free=True), slots // SLOTS_OF_MACHINE
    small = make_state(jobs, slots, free=True, sizes=(1,))
    print(f"\n{boxes} boxes of {SLOTS_OF_MACHINE} GPUs, half of which are in use\n")
    print("| state | needs that differ | placed | joined, ms | decision, ms |")
    print("|---|---|---|---|---|")
    for name, plain, held, reserved in (
        ("GPUs alone", free, 0, 0),
        ("strangers hold 60 GPUs", free, 60, 0),
        ("20 GPUs reserved", free, 0, 20),
        ("60 held, 20 reserved", free, 60, 20),
        ("60 held, 20 reserved, jobs of one slot", small, 60, 20),
        ("60 held, 100 reserved", free, 60, 100),
    ):
        joining = median_ms(lambda: join_gpus(plain, held=held, reserved=reserved), repeats)  # noqa: B023
        state = join_gpus(plain, held=held, reserved=reserved)
        deciding = median_ms(lambda: decide(state), repeats)  # noqa: B023
        placed = len(decide(state).placements)
        print(f"| {name} | {len(state.rooms)} | {placed:,} | {joining:.0f} | {deciding:.0f} |")


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--slots", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--database", action="store_true")
    options = parser.parse_args(arguments)
    print(f"{options.jobs:,} jobs, {options.slots:,} slots, {PERSONS} people\n")
    print("| state | placed | now, ms | formerly, ms | ratio |")
    print("|---|---|---|---|---|")
    measure("all slots free", make_state(options.jobs, options.slots, free=True), options.repeats)
    measure("all slots taken", make_state(options.jobs, options.slots, free=False), options.repeats)
    reserved = make_state(options.jobs, options.slots, free=True, reservations=10)
    measure("10 reservations", reserved, options.repeats)
    small = make_state(options.jobs, options.slots, free=True, sizes=(1,))
    measure("small jobs, all slots free", small, options.repeats)
    measure_gpus(options.jobs, options.slots, options.repeats)
    if options.database:
        measure_database(options.jobs, options.slots)


def measure_database(jobs: int, slots: int) -> None:
    """Print how long passes over queued jobs in the database take, and how many statements they need."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings.main")
    import django

    django.setup()
    from benchmarks.placement_rows import measure_passes

    measure_passes(jobs, slots)
    measure_passes(jobs, slots, gpus=True)


if __name__ == "__main__":
    main()
