"""Counts events for a project's quota of events a second."""

from jobs.messages.events import Metric, Points, RunnerEvent

MESSAGE_COST = 20
"""Reading and storing one message takes about as long as for this many points in a batch."""


def cost_of(event: RunnerEvent) -> int:
    """Return as how many events a message counts: one for each metric point, and a fixed number."""
    match event:
        case Metric():
            return MESSAGE_COST + len(event.points)
        case Points():
            return MESSAGE_COST + len(event.at) * len(event.names)
        case _:
            return MESSAGE_COST
