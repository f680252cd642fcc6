"""The rate limiter."""

import pytest

from workers.supervise.events.rate_limiter import RateLimiter


class Clock:
    """Does not move by itself."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def waits(limiter: RateLimiter, clock: Clock, turns: int) -> list[float]:
    """Return the delay after each of several turns that take no time."""
    delays = []
    for _ in range(turns):
        delays.append(round(limiter.delay_after(clock.now), 6))
        clock.now += delays[-1]
    return delays


def test_after_a_pause_a_burst_is_allowed_and_then_one_turn_an_interval() -> None:
    clock = Clock()
    limiter = RateLimiter(0.2, burst=3, clock=clock)
    assert waits(limiter, clock, 6) == [0.0, 0.0, 0.2, 0.2, 0.2, 0.2]
    clock.now += 10
    assert waits(limiter, clock, 4) == [0.0, 0.0, 0.2, 0.2]


def test_a_short_pause_restores_one_turn_per_interval() -> None:
    clock = Clock()
    limiter = RateLimiter(0.2, burst=3, clock=clock)
    waits(limiter, clock, 5)
    clock.now += 0.2
    assert waits(limiter, clock, 3) == [0.0, 0.2, 0.2]


@pytest.mark.parametrize("took", [0.05, 0.2, 5.0])
def test_the_duration_of_a_turn_counts_as_waiting(took: float) -> None:
    clock = Clock()
    limiter = RateLimiter(0.2, burst=1, clock=clock)
    began = clock.now
    clock.now += took
    assert limiter.delay_after(began) == pytest.approx(max(0.0, 0.2 - took))
