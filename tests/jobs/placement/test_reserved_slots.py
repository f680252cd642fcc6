"""A property of all decisions: slots that are reserved for others are left free."""

from hypothesis import given

from jobs.placement.decision import decide
from jobs.placement.reservations import UNLIMITED, Size, spread
from jobs.placement.state import State
from tests.jobs.placement.drawn import any_states, patient
from tests.jobs.placement.situations import NOW, running


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
