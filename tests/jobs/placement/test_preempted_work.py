"""Properties of all decisions: which running work makes room, and how often."""

from collections import defaultdict

from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.placement.decision import decide
from jobs.placement.state import State
from tests.jobs.placement.drawn import any_states, patient, people
from tests.jobs.placement.situations import World, machine, work


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
