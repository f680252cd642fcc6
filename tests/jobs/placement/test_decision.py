"""The order in which waiting work gets slots, and its reasons to wait."""

from dataclasses import replace

from jobs.placement.decision import decide
from jobs.placement.state import Limit, Room
from tests.jobs.placement.situations import NOW, machine, placed, reserved, running, state, work


def test_one_persons_many_trials_do_not_go_before_everyones_next_job() -> None:
    trials = [work(1, key=number, number=number) for number in range(1, 201)]
    others = [work(2, key=500, person=2), work(3, key=501, person=3)]
    assert placed(decide(state([*trials, *others]))) == [1, 2, 3, 1]


def test_whoever_has_used_less_of_the_pool_is_next() -> None:
    waiting = [work(1, person=1), work(2, person=2)]
    used = {("default", 1): 5000.0, ("default", 2): 100.0}
    decision = decide(state(waiting, [machine(slots=1)], used=used))
    assert placed(decision) == [2]
    assert decision.reasons[1] == "It needs 1 of the 1 slot of pool default; 0 free now."


def test_work_behind_younger_work_shows_that_its_person_has_used_more() -> None:
    waiting = [work(1, person=1), work(2, person=2)]
    used = {("default", 1): 5000.0}
    decision = decide(state(waiting, [machine(slots=1)], running=[running(9, person=3)], used=used))
    assert decision.reasons[1] == (
        "Job 2 is ahead of it and waits for 1 slot: the person who submitted that one has used less of pool "
        "default lately."
    )


def test_a_persons_use_in_another_pool_does_not_count() -> None:
    waiting = [work(1, person=1), work(2, person=2)]
    assert placed(decide(state(waiting, [machine(slots=1)], used={("other", 1): 5000.0}))) == [1]


def test_priority_comes_before_shares() -> None:
    waiting = [work(1, person=1, priority=60), work(2, person=2)]
    assert placed(decide(state(waiting, [machine(slots=1)], used={("default", 1): 5000.0}))) == [1]


def test_a_person_without_a_slot_who_has_waited_for_a_day_is_next() -> None:
    waiting = [work(1, person=1, queued=NOW - 25 * 3600), work(2, person=2)]
    used = {("default", 1): 1e9}
    assert placed(decide(state(waiting, [machine(slots=1)], used=used))) == [1]
    holding = [running(7, person=1, machine=2)]
    machines = [machine(slots=1), machine(2, slots=1)]
    assert placed(decide(state(waiting, machines, used=used, running=holding))) == [2]


def test_the_limit_of_a_person_bounds_the_slots_of_all_their_jobs() -> None:
    waiting = [work(job) for job in (1, 2, 3)] + [work(4, person=2)]
    decision = decide(state(waiting, of_person={1: Limit(2, "olga")}))
    assert placed(decision) == [1, 4, 2]
    assert decision.reasons == {3: "olga uses 2 of the 2 slots that they may use at once."}


def test_work_at_a_limit_takes_no_turn_and_blocks_no_other() -> None:
    waiting = [work(1, slots=4), work(2)]
    decision = decide(state(waiting, of_person={1: Limit(3, "olga")}))
    assert placed(decision) == [2]


def test_reserved_slots_are_kept_for_their_holder_also_when_other_work_is_ahead() -> None:
    waiting = [work(1, slots=2), work(2, slots=2), work(3, person=9, slots=2)]
    decision = decide(state(waiting, reservations=[reserved(slots=2)]))
    assert placed(decision) == [1, 3]
    assert decision.reasons[2] == "It needs 2 of the 4 slots of pool default; 0 free now."


def test_work_that_would_run_into_a_reservation_waits_and_shows_which_limit_would_do() -> None:
    later = reserved(begins=NOW + 7200, ends=NOW + 9000)
    waiting = [work(1), work(2, seconds=3600.0), work(3, seconds=7260.0)]
    decision = decide(state(waiting, reservations=[later]))
    assert placed(decision) == [2]
    assert decision.reasons[1] == (
        "Reserved for others (reservation 1) from 1970-01-12 15:46 UTC to 1970-01-12 16:16 UTC: all slots of "
        "pool default. A job without a time limit may run for 24 h; one with resources.max_minutes of at "
        "most 120 ends before."
    )
    assert decision.reasons[3].endswith("With its time limit of 121 minutes, it could still run then.")


def test_a_reservation_in_two_days_hinders_no_work_without_a_limit() -> None:
    later = reserved(begins=NOW + 48 * 3600, ends=NOW + 49 * 3600)
    assert placed(decide(state([work(1)], reservations=[later]))) == [1]


def test_slots_that_the_holder_uses_already_are_not_kept_twice() -> None:
    held = [running(8, person=9, slots=2)]
    decision = decide(state([work(1, slots=2)], running=held, reservations=[reserved(slots=2)]))
    assert placed(decision) == [1]


def test_work_of_higher_priority_preempts_the_youngest_of_the_lowest_priority() -> None:
    runs = [
        running(1, priority=50, slots=2),
        running(2, priority=10, started=NOW - 60),
        running(3, priority=10, started=NOW - 30),
    ]
    decision = decide(state([work(5, priority=90)], running=runs, preempting=frozenset({"default"})))
    assert [preemption.running.job for preemption in decision.preemptions] == [3]
    assert decision.reasons[5].endswith(
        "0 free now. Job 3 has a lower priority: it writes a checkpoint and makes room."
    )


def test_nothing_is_preempted_unless_that_is_switched_on_or_if_it_would_begin_again() -> None:
    runs = [running(1, priority=10, slots=4)]
    assert not decide(state([work(5, priority=90)], running=runs)).preemptions
    scripts = [running(1, priority=10, slots=4, resumes=False)]
    on = frozenset({"default"})
    assert not decide(state([work(5, priority=90)], running=scripts, preempting=on)).preemptions
    equals = [running(1, priority=90, slots=4)]
    assert not decide(state([work(5, priority=90)], running=equals, preempting=on)).preemptions


def test_nothing_is_preempted_if_that_makes_too_little_room() -> None:
    runs = [running(1, priority=10), running(2, priority=90, slots=3)]
    on = frozenset({"default"})
    assert not decide(state([work(5, priority=90, slots=4)], running=runs, preempting=on)).preemptions


def test_nobody_else_is_preempted_while_slots_are_being_freed() -> None:
    runs = [running(1, priority=10, slots=2, leaves_for=5), running(2, priority=10, slots=2)]
    on = frozenset({"default"})
    decision = decide(state([work(5, priority=90, slots=2)], running=runs, preempting=on))
    assert not decision.preemptions
    assert decision.reasons[5].endswith("Job 1 has a lower priority: it writes a checkpoint and makes room.")


def test_a_machine_that_takes_nothing_shows_why_and_blocks_nothing() -> None:
    full = machine(free=0, closed="The disk of w1 is nearly full.")
    decision = decide(state([work(1), work(2)], [full]))
    assert decision.reasons == {1: "The disk of w1 is nearly full.", 2: "The disk of w1 is nearly full."}


def test_slots_that_strangers_hold_are_named() -> None:
    held = machine(slots=2, free=0, note="GPU 1 is held by another user's python.")
    assert decide(state([work(1)], [held])).reasons[1] == (
        "It needs 1 of the 2 slots of pool default; 0 free now. GPU 1 is held by another user's python."
    )


def test_work_whose_devices_do_not_help_is_not_preempted() -> None:
    on = frozenset({"default"})
    runs = [running(1, priority=10), running(2, priority=10, started=NOW - 60), running(3, priority=10)]
    base = state([work(5, priority=90, takes_devices=True)], [machine(slots=3)], running=runs, preempting=on)
    (needs,) = base.fitting
    # The youngest ones have other devices, or none.
    decision = decide(replace(base, rooms={needs: {1: Room(0, 1, {1002: 1})}}))
    assert [preemption.running.job for preemption in decision.preemptions] == [2]
    held_by_strangers = decide(replace(base, rooms={needs: {1: Room(0, 1)}}))
    assert not held_by_strangers.preemptions
    assert held_by_strangers.reasons[5] == "It needs 1 of the 3 slots of pool default; 0 free now."


def test_nobody_is_preempted_whose_slots_are_not_needed() -> None:
    runs = [running(1, priority=10), running(2, priority=20, slots=3)]
    decision = decide(state([work(5, priority=90, slots=3)], running=runs, preempting=frozenset({"default"})))
    assert [preemption.running.job for preemption in decision.preemptions] == [2]


def test_devices_that_one_work_of_a_pass_takes_are_not_free_for_the_next() -> None:
    waiting = [work(1, takes_devices=True), work(2, slots=2, takes_devices=True)]
    base = state(waiting, [machine(slots=4)])
    # The first one takes a device, whichever it is; the second one needs two of those that it asks for.
    decision = decide(replace(base, rooms={"2 slots": {1: Room(2, 2)}}))
    assert placed(decision) == [1]
    assert decision.reasons[2] == "It needs 2 of the 4 slots of pool default; 1 free now."
