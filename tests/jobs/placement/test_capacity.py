"""Properties of all decisions: work is placed once or waits with a reason, no slot twice, within limits."""

from collections import defaultdict

from hypothesis import given

from jobs.placement.decision import decide
from jobs.placement.state import State
from tests.jobs.placement.drawn import any_states, patient


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
