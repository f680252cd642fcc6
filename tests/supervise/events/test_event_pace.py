"""The limit on events a second, and the lines that are left out above it."""

from jobs.messages.event_cost import MESSAGE_COST, cost_of
from jobs.messages.events import Log, Metric, Points
from workers.supervise.events.event_pace import BURST_SECONDS, SHORTEST_PAUSE, EventPace
from workers.supervise.events.log_quota import LAST_LINES, within_quota


class Clock:
    """Does not move by itself."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def paced(rate: float | None) -> tuple[EventPace, Clock]:
    clock = Clock()
    pace = EventPace(clock)
    pace.set_rate(rate)
    return pace, clock


def lines(count: int) -> list[Log]:
    return [Log(time=1.0, source="stdout", line=str(number)) for number in range(count)]


def test_a_message_counts_for_itself_and_for_each_of_its_points() -> None:
    point = ("loss", 1.0, 0.5, 1.0)
    table = Points(time=1.0, names=("a", "b"), at=(1, 2, 3), times=(1, 2, 3), values=((1, 2, 3), (4, 5, 6)))
    assert cost_of(Log(time=1.0, line="x")) == MESSAGE_COST
    assert cost_of(Metric(time=1.0, points=(point, point))) == MESSAGE_COST + 2
    assert cost_of(table) == MESSAGE_COST + 6


def test_after_a_burst_reading_waits_until_the_events_are_within_the_rate() -> None:
    pace, clock = paced(1000)
    pace.spend(int(1000 * BURST_SECONDS))
    assert pace.delay() == 0
    pace.spend(2000)
    assert pace.delay() == 2.0
    clock.now += 1.99
    assert pace.delay() == SHORTEST_PAUSE
    clock.now += 0.01
    assert pace.delay() == 0
    clock.now += 1000
    pace.spend(int(1000 * BURST_SECONDS) + 1)
    assert pace.delay() > 0, "a long pause allows no longer burst"


def test_a_changed_share_applies_to_the_events_that_wait() -> None:
    pace, _ = paced(1000)
    pace.spend(int(1000 * BURST_SECONDS) + 1000)
    pace.set_rate(100)
    assert pace.delay() == 10.0
    pace.set_rate(2000)
    assert pace.delay() == 0.5
    pace.lift()
    assert pace.delay() == 0
    assert pace.has_room_for_message()


def test_without_a_quota_nothing_waits() -> None:
    pace, _ = paced(None)
    pace.spend(10**9)
    assert pace.delay() == 0
    assert pace.has_room_for_message()


def test_the_rate_is_measured_between_two_calls() -> None:
    pace, clock = paced(None)
    pace.spend(500)
    clock.now += 5
    assert pace.measured() == 100
    clock.now += 5
    assert pace.measured() == 0


def test_lines_above_the_quota_are_left_out_with_their_number_and_the_last_ones_are_kept() -> None:
    pace, _ = paced(10 * MESSAGE_COST / BURST_SECONDS)
    passed = list(within_quota(lines(100), pace))
    warning = passed.pop(10)
    left_out = 100 - 10 - LAST_LINES
    assert (warning.level, warning.source) == ("warning", "worker")
    assert warning.line.startswith(f"stdout: {left_out} lines left out here; the quota of events a second")
    assert [line.line for line in passed] == [str(n) for n in [*range(10), *range(100 - LAST_LINES, 100)]]


def test_a_few_lines_above_the_quota_are_kept_without_a_warning() -> None:
    pace, _ = paced(10 * MESSAGE_COST / BURST_SECONDS)
    assert list(within_quota(lines(10 + LAST_LINES), pace)) == lines(10 + LAST_LINES)
