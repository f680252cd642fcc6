"""The one door to every search algorithm."""

import pkgutil

from jobs.contracts.suggest import Answer, SuggestRequest
from workers.engine.search.history import History


def suggest(request: SuggestRequest) -> Answer:
    """Return what to train next: up to `request.count` suggestions.

    A pure function: the same rows in any order give the same answer, in any process. The algorithm's module,
    and what it imports, is loaded when it is asked for the first time.
    """
    answer = pkgutil.resolve_name(request.search.info.answer)
    found: Answer = answer(History(request), request.count)
    return found
