"""Counts a search's trials, on which its next suggestions and its end depend."""

from jobs.models import Job


def count_waiting(search: Job) -> int:
    """Return how many queued trials belong to no open attempt."""
    return search.trials.waiting().count()


def count_suggested(search: Job) -> int:
    """Return how many trials its algorithm has suggested, in any state."""
    return search.trials.filter(source="algorithm").count()
