"""Grid search: the next configurations of the space's own enumeration."""

from collections.abc import Callable
from itertools import islice

from jobs.spec.search_space import Value, grid
from jobs.spec.suggest import Key, key
from workers.engine.search.history import History


def start(history: History) -> Callable[[History], dict[str, Value] | None]:
    """Return what gives the next point of the grid, and None once it is used up.

    Each trial of this algorithm took the first point that was free, so the first free one stands no earlier
    than after as many points as it has made trials.
    """
    points = islice(grid(history.search.space), len(history.own), None)
    taken = _taken(history)

    def propose(_: History) -> dict[str, Value] | None:
        return next((values for values in points if key(values) not in taken), None)

    return propose


def _taken(history: History) -> set[Key]:
    """Return the points to pass over: those queued by hand, unless they are wanted again, and our own.

    Of our own only the newest can lie that far: each was put off by one that was queued by hand.
    """
    by_hand = [row for row in history.rows if row.source != "algorithm"]
    own = history.own[-4 * len(by_hand) :] if by_hand else []
    policy = history.search.duplicates
    if policy == "train":
        by_hand = []
    elif policy == "answer":  # what has no result yet cannot answer
        by_hand = [row for row in by_hand if row.result() is None]
    return {key(row.values) for row in (*own, *by_hand)}
