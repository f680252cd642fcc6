"""Makes an answer of an algorithm that proposes one new trial after the other."""

from collections.abc import Callable

from jobs.contracts.search_space import Value
from jobs.contracts.suggest import Answer, Suggestion
from workers.engine.search.duplicates import settle
from workers.engine.search.history import History

Propose = Callable[[History], dict[str, Value] | None]
"""Returns the configuration of the next trial, tried before or not; None when the algorithm has no other."""

Answerer = Callable[[History, int], Answer]
"""Answers a request for so many suggestions: what the `answer` of every algorithm's module is."""


def one_by_one(start: Callable[[History], Propose]) -> Answerer:
    """Return the `answer` of an algorithm.

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
