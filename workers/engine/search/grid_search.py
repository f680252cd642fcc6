"""Grid search: the next configurations of the space's own enumeration."""

from collections.abc import Callable

from jobs.contracts.search_space import Value, grid
from workers.engine.search.history import History, Key
from workers.engine.search.proposals import one_by_one


def start(history: History) -> Callable[[History], dict[str, Value] | None]:
    """Return what gives the next point of the grid, and None once it is used up.

    Usually the trials of this algorithm are the first points of the grid, and it goes on behind them.
    """
    points = grid(history.search.space)
    taken = _by_hand(history)
    if not all(row.values == next(points, None) for row in history.own):
        # a point was passed over, or the space was made narrower and has other points than before
        points = grid(history.search.space)
        taken |= {history.key(row.values) for row in history.own}

    def propose(_: History) -> dict[str, Value] | None:
        return next((values for values in points if history.key(values) not in taken), None)

    return propose


def _by_hand(history: History) -> set[Key]:
    """Return the points to pass over since they were queued by hand, unless they are wanted again."""
    policy = history.search.duplicates
    by_hand = [row for row in history.rows if row.source != "algorithm"]
    if policy == "train":
        return set()
    if policy == "answer":  # what has no result yet cannot answer
        by_hand = [row for row in by_hand if row.result() is None]
    return {history.key(row.values) for row in by_hand}


answer = one_by_one(start)
