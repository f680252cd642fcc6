"""Joins GPUs to a state of placements: strangers hold some, some are reserved, jobs use others."""

import random
from collections import defaultdict
from collections.abc import Hashable
from dataclasses import replace
from typing import Any

from jobs.placement.reservations import reserved_for_others
from jobs.placement.state import Machine, Reservation, Room, Running, State, Work
from jobs.queries.runs.gpus.box import Box, Wish
from jobs.spec.checks.gpu_memory import MemoryNeed

GB = 10**9
TOTAL = 80 * GB
LIMITS = (None, 1800.0, 3 * 3600.0)


def join_gpus(state: State, *, held: int, reserved: int) -> State:
    """Return a state of the same jobs on boxes with a GPU for each slot.

    Half of the GPUs are in use. Every job takes as many GPUs as slots and a fifth of the memory of each.

    Args:
        state: without running work and reservations.
        held: of how many GPUs strangers hold nearly all memory, the first one of each box.
        reserved: of how many GPUs there are reservations for a person each, from now or from in an hour on.
    """
    rng = random.Random(1)
    running = [
        Running(key, key, rng.randrange(50), 0, machine.key, machine.slots // 2, 20, state.now, resumes=True)
        for key, machine in enumerate(state.machines)
    ]
    rows = [
        Reservation(
            *(number, "default", f"w{number % len(state.machines)}", 1),
            *(
                state.now + 3600 * (number % 2),
                state.now + 7200,
                number % 50,
                None,
                (f"gpu:{7 - number % 2}",),
            ),
        )
        for number in range(reserved)
    ]
    boxes = {
        machine.key: _box(machine, held=number < held, attempt=number)
        for number, machine in enumerate(state.machines)
    }
    waiting, rooms = list[Work](), dict[Hashable, dict[int, Room]]()
    views: dict[Hashable, dict[str, frozenset[str]]] = {}
    numbers: dict[Hashable, int] = {}
    for work in state.waiting:
        limited = replace(work, seconds=rng.choice(LIMITS), takes_devices=True)
        who = (limited.person, limited.project, limited.seconds)
        if who not in views:
            views[who] = _kept(rows, limited, state.now)
        kept = views[who]
        # A number, as from the scheduler.
        needs = numbers.setdefault((limited.slots, frozenset(kept.items())), len(numbers))
        if needs not in rooms:
            rooms[needs] = _rooms(limited.slots, kept, state.machines, boxes)
        waiting.append(replace(limited, needs=needs))
    return replace(
        state,
        waiting=waiting,
        machines=[replace(machine, free=machine.slots - machine.slots // 2) for machine in state.machines],
        running=running,
        reservations=rows,
        rooms=rooms,
        fitting={needs: [*rooms_] for needs, rooms_ in rooms.items()},
    )


def _box(machine: Machine, *, held: bool, attempt: int) -> Box:
    devices: list[dict[str, Any]] = [
        {"name": f"gpu:{number}", "kind": "H100", "memory_bytes": TOTAL} for number in range(machine.slots)
    ]
    devices[0] |= {"others_bytes": 79 * GB} if held else {}
    for device in devices[1 : 1 + machine.slots // 2]:
        device["attempts"] = [attempt]
    return Box(machine.slots, devices, attempts={attempt: machine.slots // 2})


def _kept(rows: list[Reservation], work: Work, now: float) -> dict[str, frozenset[str]]:
    kept: dict[str, frozenset[str]] = defaultdict(frozenset)
    for row in reserved_for_others(rows, work.person, work.project, work.seconds, now):
        kept[row.machine] |= frozenset(row.gpus)
    return kept


def _rooms(
    slots: int, kept: dict[str, frozenset[str]], machines: Any, boxes: dict[int, Box]
) -> dict[int, Room]:
    rooms = {}
    for machine in machines:
        wish = Wish(True, MemoryNeed(TOTAL // 5), slots, kept=kept.get(machine.name, frozenset()))
        if boxes[machine.key].has_enough(wish, runs=False):
            rooms[machine.key] = boxes[machine.key].room(wish) or Room(0, slots)
    return rooms
