"""Returns suggestions for a search's next trials, by the algorithm that the search names."""

import pkgutil

from jobs.messages.suggest import Answer, SuggestRequest
from workers.engine.search.history import History

ALGORITHM_ERRORS = (ValueError, ArithmeticError, LookupError, RuntimeError)
"""The errors that an algorithm may raise: the requester gets the message, and the search shows it."""


def suggest(request: SuggestRequest) -> Answer:
    """Return up to `request.count` suggestions for the next trials.

    It is a pure function: the same rows in any order give the same answer in any process. The algorithm's
    module is imported at its first use.
    """
    answer = pkgutil.resolve_name(request.search.info.answer)
    result: Answer = answer(History(request), request.count)
    return result
