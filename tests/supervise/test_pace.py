"""How often something may be done."""

import pytest

from workers.supervise.pace import Pace


class Clock:
    """Stands still until it is moved."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def waits(pace: Pace, clock: Clock, turns: int) -> list[float]:
    """Return what each of some turns has to wait after it; each takes no time."""
    found = []
    for _ in range(turns):
        found.append(round(pace.taken(clock.now), 6))
        clock.now += found[-1]
    return found


def test_after_a_rest_some_turns_come_at_once_and_then_one_an_interval() -> None:
    clock = Clock()
    pace = Pace(0.2, burst=3, clock=clock)
    assert waits(pace, clock, 6) == [0.0, 0.0, 0.2, 0.2, 0.2, 0.2]
    clock.now += 10
    assert waits(pace, clock, 4) == [0.0, 0.0, 0.2, 0.2]


def test_a_short_rest_gives_back_as_many_turns_as_it_had_intervals() -> None:
    clock = Clock()
    pace = Pace(0.2, burst=3, clock=clock)
    waits(pace, clock, 5)
    clock.now += 0.2
    assert waits(pace, clock, 3) == [0.0, 0.2, 0.2]


@pytest.mark.parametrize("took", [0.05, 0.2, 5.0])
def test_what_a_turn_takes_counts_as_waiting(took: float) -> None:
    clock = Clock()
    pace = Pace(0.2, burst=1, clock=clock)
    began = clock.now
    clock.now += took
    assert pace.taken(began) == pytest.approx(max(0.0, 0.2 - took))
