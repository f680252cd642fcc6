"""Grid search: suggests the next configurations in the space's grid."""

from collections.abc import Callable

from jobs.spec.space.search_space import Value, grid
from workers.engine.search.history import History, Key
from workers.engine.search.proposals import one_by_one


def start(history: History) -> Callable[[History], dict[str, Value] | None]:
    """Return the function that proposes the grid's next point, and None at its end.

    Usually this algorithm's trials are the grid's first points, so it continues after them.
    """
    points = grid(history.search.space)
    taken = _by_hand(history)
    # Comparing also moves `points` behind the trials, without a set of up to all points of the grid.
    if not all(row.values == next(points, None) for row in history.own):
        # A point was skipped, or the space was narrowed and now has other points.
        points = grid(history.search.space)
        taken |= {history.key(row.values) for row in history.own}

    def propose(_: History) -> dict[str, Value] | None:
        return next((values for values in points if history.key(values) not in taken), None)

    return propose


def _by_hand(history: History) -> set[Key]:
    """Return the points to skip because users queued them, unless duplicates are to be trained."""
    policy = history.search.duplicates
    by_hand = [row for row in history.rows if row.source != "algorithm"]
    if policy == "train":
        return set()
    if policy == "answer":
        # `suggestion_for` answers these points by their trials; one without a result cannot answer
        by_hand = [row for row in by_hand if row.result() is None]
    return {history.key(row.values) for row in by_hand}


answer = one_by_one(start)
