"""Properties of all decisions: the order of a person's work, equal shares, and that no work starves."""

from collections import defaultdict
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.placement.decision import decide
from jobs.placement.shares import PATIENCE
from jobs.placement.state import State
from tests.jobs.placement.drawn import people, states
from tests.jobs.placement.situations import NOW, World, machine, state, work


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
