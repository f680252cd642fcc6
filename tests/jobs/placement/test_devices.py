"""Properties of all decisions about machines whose devices are not all open to each work."""

from collections import defaultdict

from hypothesis import given

from jobs.placement.decision import decide
from jobs.placement.state import Room, Running, State, Work
from tests.jobs.placement.drawn import patient, states_with_rooms


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
