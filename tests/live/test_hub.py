"""The buffer for a watched job's recent events."""

from jobs.queries.runs.codec import Event
from webapp.live.hub import RING_EVENTS, RING_POINTS, WatchedJob


def metric(cursor: int, points: int) -> Event:
    return {"type": "metric", "cursor": cursor, "points": [["loss", 1.0, 1.0, 1.0]] * points}


def test_the_ring_holds_the_newest_events_within_its_bounds() -> None:
    watch = WatchedJob(start=0)
    watch.add([{"type": "log", "cursor": cursor} for cursor in range(1, RING_EVENTS + 11)])
    assert (len(watch.ring), watch.start) == (RING_EVENTS, 10)
    assert watch.after(9, 5) is None, "older events are not in the ring"


def test_the_ring_is_limited_by_metric_points_too() -> None:
    watch = WatchedJob(start=0)
    watch.add([metric(cursor, RING_POINTS // 4) for cursor in range(1, 11)])
    assert [event["cursor"] for event in watch.ring] == [7, 8, 9, 10]
    assert (watch.start, watch.points, watch.head) == (6, RING_POINTS, 10)
    events = watch.after(6, 1000)
    assert events is not None
    assert [event["cursor"] for event in events] == [7, 8], "a frame is limited by points too"
