"""The one door to every search algorithm."""

from collections.abc import Callable, Mapping

from jobs.contracts.search import Algorithm
from jobs.contracts.search_space import Value
from jobs.contracts.suggest import Answer, Suggestion, SuggestRequest
from workers.engine.search import asha, grid_search, hyperband, random_search
from workers.engine.search.duplicates import settle
from workers.engine.search.history import History

Propose = Callable[[History], dict[str, Value] | None]
"""Gives the configuration of the next trial, tried or not; None when the algorithm has no other."""

Answerer = Callable[[History, int], Answer]
"""Answers a request for so many suggestions."""


def one_by_one(start: Callable[[History], Propose]) -> Answerer:
    """Make an answer of proposals for one new trial after the other.

    Args:
        start: returns what proposes. It is called once an answer, so it may prepare what all proposals need.
    """

    def answer(history: History, count: int) -> Answer:
        propose = start(history)
        found: list[Suggestion] = []
        while len(found) < count and history.left > 0:
            values = propose(history)
            if values is None:
                break
            found.append(settle(history, values))
            history.add(found[-1])
        return Answer(suggestions=tuple(found), exhausted=len(found) < count)

    return answer


CHEAP: dict[Algorithm, Answerer] = {
    "random": one_by_one(lambda _: random_search.propose),
    "grid": one_by_one(grid_search.start),
    "hyperband": hyperband.answer,
    "asha": asha.answer,
}
"""What costs milliseconds and imports nothing large; `algorithms.py` has all of them."""


def suggest(request: SuggestRequest, algorithms: Mapping[Algorithm, Answerer] = CHEAP) -> Answer:
    """Say what to train next: up to `request.count` suggestions.

    A pure function: the same rows in any order give the same answer, in any process.

    Raises:
        KeyError: the request's algorithm is not among `algorithms`.
    """
    return algorithms[request.search.algorithm](History(request), request.count)
