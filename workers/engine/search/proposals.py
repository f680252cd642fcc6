"""Builds the `answer` function for algorithms that propose one new trial after another."""

from collections.abc import Callable

from jobs.messages.suggest import Answer, Suggestion
from jobs.spec.space.search_space import Value
from workers.engine.search.draws import first_values
from workers.engine.search.duplicates import suggestion_for
from workers.engine.search.history import History

Propose = Callable[[History], dict[str, Value] | None]
"""Returns the configuration of the next trial, which may have been tried; None if there are no more."""

AnswerFunction = Callable[[History, int], Answer]
"""Type of every algorithm's `answer`: takes the history and the number of suggestions."""


def one_by_one(start: Callable[[History], Propose]) -> AnswerFunction:
    """Return the `answer` function for an algorithm.

    Args:
        start: returns the proposing function. It is called once per answer, so it can do work that all
            proposals share.
    """

    def answer(history: History, count: int) -> Answer:
        propose = start(history)
        suggestions: list[Suggestion] = []
        while len(suggestions) < count and history.left > 0:
            values = first_values(history) or propose(history)
            if values is None:
                break
            suggestions.append(suggestion_for(history, values))
            history.add(suggestions[-1])
        return Answer(suggestions=tuple(suggestions), exhausted=len(suggestions) < count)

    return answer
