"""Draws states for decisions about placements."""

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from jobs.placement.reservations import Size, first_conflict
from jobs.placement.state import Limit, Reservation, Room, State
from tests.jobs.placement.situations import HOUR, NOW, machine, reserved, running, state, work

people = st.integers(1, 4)
patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""For states that take a busy machine long to draw."""


@st.composite
def works(draw: st.DrawFn, *, most_slots: int = 4) -> list[Any]:
    return [
        work(
            job,
            person=draw(people),
            project=draw(st.sampled_from([None, 1, 2])),
            priority=draw(st.sampled_from([10, 50, 90])),
            queued=NOW - draw(st.integers(0, 3 * 24)) * HOUR,
            slots=draw(st.integers(1, most_slots)),
            seconds=draw(st.sampled_from([None, 600.0, 5 * HOUR])),
        )
        for job in range(1, draw(st.integers(0, 12)) + 1)
    ]


@st.composite
def accepted_reservations(draw: st.DrawFn, sizes: list[Size]) -> list[Reservation]:
    rows: list[Reservation] = []
    for key in range(draw(st.integers(0, 4))):
        begins = NOW + draw(st.integers(-3, 30)) * HOUR
        is_for_project = draw(st.booleans())
        row = reserved(
            key=key,
            machine=draw(st.sampled_from(["", "w1", "w2"])),
            slots=draw(st.sampled_from([None, 1, 2, 3])),
            begins=begins,
            ends=begins + draw(st.integers(1, 30)) * HOUR,
            person=None if is_for_project else draw(people),
            project=draw(st.sampled_from([1, 2])) if is_for_project else None,
        )
        if row.ends > NOW and first_conflict(row, rows, sizes) is None:
            rows.append(row)
    return rows


@st.composite
def states(draw: st.DrawFn) -> State:
    machines = [machine(1, draw(st.integers(1, 6))), machine(2, draw(st.integers(1, 6)))]
    sizes = [Size(one.key, one.name, one.slots) for one in machines]
    runs, free = [], {one.key: one.slots for one in machines}
    for job in range(100, 100 + draw(st.integers(0, 5))):
        run = running(
            job,
            machine=draw(st.sampled_from([1, 2])),
            person=draw(people),
            project=draw(st.sampled_from([None, 1, 2])),
            priority=draw(st.sampled_from([10, 50, 90])),
            slots=draw(st.integers(1, 3)),
            resumes=draw(st.booleans()),
        )
        if run.slots <= free[run.machine]:
            free[run.machine] -= run.slots
            runs.append(run)
    return state(
        draw(works()),
        machines,
        running=runs,
        reservations=draw(accepted_reservations(sizes)),
        of_person={person: Limit(draw(st.integers(1, 6)), f"p{person}") for person in draw(st.sets(people))},
        of_project={1: Limit(draw(st.integers(1, 6)), "vision")},
        used={("default", person): draw(st.floats(0, 1e6)) for person in draw(st.sets(people))},
        preempting=draw(st.sampled_from([frozenset(), frozenset({"default"})])),
    )


@st.composite
def states_with_rooms(draw: st.DrawFn) -> State:
    """Machines with a device for each slot, some of which are held by strangers or are of another kind.

    Works of one size want any device, or one of some kind, or none; works that run have some of them.
    """
    plain = draw(states())
    kinds = draw(st.lists(st.sampled_from(["none", "any", "some"]), min_size=12, max_size=12))
    waiting = [
        replace(one, needs=(one.needs, kind), takes_devices=kind != "none")
        for one, kind in zip(plain.waiting, kinds, strict=False)
    ]
    held = {one.key: draw(st.integers(0, 2)) for one in plain.machines}
    with_devices = {run.key for run in plain.running if draw(st.booleans())}
    rooms: dict[Hashable, dict[int, Room]] = {}
    for one, kind in zip(waiting, kinds, strict=False):
        if not one.takes_devices or one.needs in rooms:
            continue
        rooms[one.needs] = {}
        for machine_ in plain.machines:
            here = [run for run in plain.running if run.machine == machine_.key and run.key in with_devices]
            free = machine_.slots - sum(run.slots for run in here) - held[machine_.key]
            frees = {run.key: run.slots for run in here}
            if kind == "some":
                free, frees = free - draw(st.integers(0, 2)), {key: 1 for key in frees if draw(st.booleans())}
            rooms[one.needs][machine_.key] = Room(free, one.slots, frees)
    fitting: dict[Hashable, Sequence[int]] = {
        (needs, kind): keys for needs, keys in plain.fitting.items() for kind in ("none", "any", "some")
    }
    return replace(plain, waiting=waiting, fitting=fitting, rooms=rooms)


any_states = st.one_of(states(), states_with_rooms())
