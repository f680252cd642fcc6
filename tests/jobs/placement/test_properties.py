"""Properties of all decisions: no slot twice, no limit or reservation exceeded, no work starves."""

from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jobs.placement.decision import decide
from jobs.placement.reservations import UNLIMITED, Size, first_conflict, spread
from jobs.placement.shares import PATIENCE
from jobs.placement.state import Limit, Reservation, Room, Running, State, Work
from tests.jobs.placement.situations import HOUR, NOW, World, machine, reserved, running, state, work

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


@given(states_with_rooms())
@patient
def test_work_gets_only_devices_that_are_open_to_it_and_none_twice(given_state: State) -> None:
    given_out: dict[int, int] = defaultdict(int)
    for placement in decide(given_state).placements:
        if not placement.work.takes_devices:
            continue
        room = given_state.rooms[placement.work.needs][placement.machine]
        assert room.free - given_out[placement.machine] >= placement.work.slots
        given_out[placement.machine] += placement.work.slots


@given(states_with_rooms())
@patient
def test_work_is_preempted_only_if_that_frees_enough_slots_and_devices(given_state: State) -> None:
    decision = decide(given_state)
    free = {one.key: one.free for one in given_state.machines}
    given_out: dict[int, int] = defaultdict(int)
    for placement in decision.placements:
        free[placement.machine] -= placement.work.slots
        given_out[placement.machine] += placement.work.slots * placement.work.takes_devices
    victims: dict[int, list[Running]] = defaultdict(list)
    for preemption in decision.preemptions:
        victims[preemption.work.key].append(preemption.running)
    for one in given_state.waiting:
        if not (mine := victims[one.key]):
            continue
        (where,) = {run.machine for run in mine}
        room = given_state.rooms.get(one.needs, {}).get(where, Room(10**6, 0))

        def is_enough(
            leaving: list[Running], work: Work = one, where: int = where, room: Room = room
        ) -> bool:
            slots = free[where] + sum(run.slots for run in leaving)
            devices = room.free - given_out[where] + sum(room.frees.get(run.key, 0) for run in leaving)
            return slots >= work.slots and devices >= room.least

        others = [run for key, runs in victims.items() if key != one.key for run in runs]
        there = [run for run in others if run.machine == where]
        assert is_enough([*there, *mine])


@given(any_states)
@patient
def test_all_waiting_work_is_placed_once_or_has_a_reason(given_state: State) -> None:
    decision = decide(given_state)
    keys = [placement.work.key for placement in decision.placements]
    assert len(keys) == len(set(keys))
    assert {*keys} | decision.reasons.keys() == {one.key for one in given_state.waiting}
    assert not {*keys} & decision.reasons.keys()
    assert all(decision.reasons.values())


@given(any_states)
@patient
def test_no_slot_is_given_twice(given_state: State) -> None:
    left = {one.key: one.free for one in given_state.machines}
    for placement in decide(given_state).placements:
        left[placement.machine] -= placement.work.slots
        assert left[placement.machine] >= 0


@given(any_states)
@patient
def test_no_limit_of_a_person_or_project_is_exceeded(given_state: State) -> None:
    of_person: dict[int | None, int] = defaultdict(int)
    of_project: dict[int | None, int] = defaultdict(int)
    for run in given_state.running:
        of_person[run.person] += run.slots
        of_project[run.project] += run.slots
    for placement in decide(given_state).placements:
        person, project = placement.work.person, placement.work.project
        of_person[person] += placement.work.slots
        of_project[project] += placement.work.slots
        if person is not None and person in given_state.of_person:
            assert of_person[person] <= given_state.of_person[person].slots
        if project is not None and project in given_state.of_project:
            assert of_project[project] <= given_state.of_project[project].slots


@given(any_states)
@patient
def test_work_leaves_the_slots_free_that_are_reserved_for_others_while_it_may_run(given_state: State) -> None:
    sizes = [Size(one.key, one.name, one.slots) for one in given_state.machines]
    runs = [*given_state.running]
    for number, placement in enumerate(decide(given_state).placements):
        placed = placement.work
        runs.append(
            running(
                placed.job,
                key=-number,
                person=placed.person,
                project=placed.project,
                machine=placement.machine,
                slots=placed.slots,
            )
        )
        end = NOW + (UNLIMITED if placed.seconds is None else placed.seconds)
        for moment in {NOW, *(row.begins for row in given_state.reservations if NOW < row.begins < end)}:
            active = [row for row in given_state.reservations if row.begins <= moment < row.ends]
            holds, _ = spread(active, sizes)
            here = holds.get(placement.machine, ())
            foreign = [hold for hold in here if not hold.reservation.is_for(placed.person, placed.project)]
            size = next(one.slots for one in sizes if one.key == placement.machine)
            taken = sum(run.slots for run in runs if run.machine == placement.machine)
            # Each holder can still get the reserved slots, less those that the holder has there.
            theirs = sum(
                run.slots
                for run in runs
                if run.machine == placement.machine
                and any(hold.reservation.is_for(run.person, run.project) for hold in foreign)
            )
            assert size - taken >= sum(hold.slots for hold in foreign) - theirs


@given(states())
def test_within_a_person_work_of_the_same_size_is_placed_by_priority_then_age(given_state: State) -> None:
    alike = [replace(one, slots=1, seconds=None, project=None) for one in given_state.waiting]
    plain = state(
        alike,
        [replace(one, free=one.slots) for one in given_state.machines],
        used=given_state.used,
        of_person=given_state.of_person,
    )
    order: dict[int | None, list[tuple[int, float, int]]] = defaultdict(list)
    for placement in decide(plain).placements:
        one = placement.work
        order[one.person].append((-one.priority, one.queued, one.job))
    for of_person in order.values():
        assert of_person == sorted(of_person)
    left = {placement.work.key for placement in decide(plain).placements}
    for one in alike:
        better = [other for other in alike if other.person == one.person and other.key not in left]
        if one.key in left:
            assert all((-one.priority, one.queued, one.job) < (-o.priority, o.queued, o.job) for o in better)


@given(any_states)
@patient
def test_only_resumable_work_of_lower_priority_is_preempted_and_makes_enough_room(given_state: State) -> None:
    decision = decide(given_state)
    freed: dict[int, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    for preemption in decision.preemptions:
        run = preemption.running
        assert run.resumes
        assert run.leaves_for is None
        assert run.priority < preemption.work.priority
        freed[preemption.work.key][run.machine] += run.slots
    left = {one.key: one.free for one in given_state.machines}
    for placement in decision.placements:
        left[placement.machine] -= placement.work.slots
    for key, machines in freed.items():
        ((where, slots),) = machines.items()  # one machine
        assert left[where] + slots >= next(one.slots for one in given_state.waiting if one.key == key)


@settings(deadline=None, max_examples=25)
@given(
    st.lists(st.tuples(people, st.integers(1, 4), st.integers(1, 20)), min_size=1, max_size=6),
    st.integers(1, 3),
)
def test_every_waiting_job_is_placed_however_many_arrive_from_others(
    mine: list[tuple[int, int, int]], arrivals: int
) -> None:
    """Others submit small jobs for ever, each of bounded time; those of the test are placed nevertheless."""
    world = World([machine(1, 4), machine(2, 2)])
    world.waiting = [
        work(job, person=person, slots=slots, queued=NOW + after)
        for job, (person, slots, after) in enumerate(mine, start=1)
    ]
    wanted = set(range(1, len(mine) + 1))
    job = 1000
    for step in range(400):
        for number in range(arrivals):
            job += 1
            # Some of them are by people who have never used anything.
            person = 5 + (number + step) % 3 if step % 2 else 1000 + job
            world.waiting.append(work(job, person=person, queued=world.now))
        world.step(1800.0, lasts=1800.0)
        if wanted <= {*world.done} | {run.work.job for run in world.runs}:
            return
    left = wanted - {*world.done}
    raise AssertionError(f"jobs {left} still wait after {400 * 1800 / PATIENCE:.0f} days")


@settings(deadline=None, max_examples=25)
@given(st.integers(2, 4), st.integers(1, 4), people)
def test_small_jobs_never_starve_a_large_one(size: int, persons: int, owner: int) -> None:
    world = World([machine(1, 4)])
    world.waiting = [work(job, person=1 + job % persons, queued=NOW) for job in range(10, 20)]
    world.waiting.append(work(1, person=owner, slots=size, queued=NOW + 1))
    job = 100
    for _ in range(150):
        for _ in range(4):
            job += 1
            world.waiting.append(work(job, person=1 + job % persons, queued=world.now))
        # The ends differ, so that slots become free one at a time.
        world.step(600.0, lasts=1200.0 + job % 4 * 600.0)
        if 1 in {run.work.job for run in world.runs}:
            return
    raise AssertionError("the large job never ran")


@settings(deadline=None, max_examples=25)
@given(st.lists(st.tuples(people, st.sampled_from([10, 50, 90]), st.integers(1, 4)), max_size=8))
def test_preemption_ends_with_all_work_done_and_each_job_preempted_only_by_higher_ones(
    jobs: list[tuple[int, int, int]],
) -> None:
    world = World([machine(1, 4)], fields={"preempting": frozenset({"default"})})
    for number, (person, priority, slots) in enumerate(jobs, start=1):
        world.waiting.append(work(number, person=person, priority=priority, slots=slots, queued=world.now))
        world.step(60.0, lasts=600.0)
    for _ in range(200):
        world.step(60.0, lasts=600.0)
    assert sorted(world.done) == list(range(1, len(jobs) + 1))
    for number, (_, priority, _) in enumerate(jobs, start=1):
        higher = sum(other > priority for _, other, _ in jobs)
        assert world.preempted[number] <= higher


@settings(deadline=None, max_examples=25)
@given(st.integers(5, 12), st.integers(1, 3))
def test_two_people_with_many_jobs_get_equal_shares(count: int, head_start: int) -> None:
    world = World([machine(1, 4)])
    world.waiting = [work(job, person=1) for job in range(1, 61)]
    for _ in range(head_start):
        world.step(600.0, lasts=600.0)
    world.waiting += [work(1000 + job, person=2, queued=world.now) for job in range(60)]
    before = len(world.done) + len(world.runs)
    for _ in range(count):
        world.step(600.0, lasts=600.0)
    ran = [*world.done, *(run.work.job for run in world.runs)]
    first, second = sum(job <= 60 for job in ran) - before, sum(job >= 1000 for job in ran)
    # The second catches up with the first; then both get the same.
    assert second >= first
    assert second - first <= before + 4
