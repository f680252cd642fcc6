"""The one door to every search algorithm."""

from collections.abc import Callable

from jobs.spec.search import Algorithm
from jobs.spec.search_space import Value
from workers.engine.search import grid_search, random_search
from workers.engine.search.request import SuggestRequest

Suggest = Callable[[SuggestRequest], list[dict[str, Value]]]


def _bayesian(request: SuggestRequest) -> list[dict[str, Value]]:
    from workers.engine.search import bayesian  # imports keras_tuner: seconds, and 300 MB

    return bayesian.suggest(request)


ALGORITHMS: dict[Algorithm, Suggest] = {
    "random": random_search.suggest,
    "grid": grid_search.suggest,
    "bayesian": _bayesian,
}


def suggest(request: SuggestRequest) -> list[dict[str, Value]]:
    """Return the values of up to `request.count` new trials; fewer only when a grid is used up.

    `random` and `grid` cost microseconds and import nothing large; `bayesian` takes seconds and
    belongs into a process of its own (`python -m workers.engine.search`).
    """
    return ALGORITHMS[request.search.algorithm](request)
