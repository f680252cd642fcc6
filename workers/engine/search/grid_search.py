"""Grid search: the next configurations of the space's own enumeration that have no trial yet."""

from itertools import islice

from jobs.spec.search_space import Value, grid
from workers.engine.search.request import SuggestRequest, key


def suggest(request: SuggestRequest) -> list[dict[str, Value]]:
    """Return up to `request.count` configurations; fewer, in the end none, when the grid is used up."""
    seen = request.seen()
    fresh = (values for values in grid(request.search.space) if key(values) not in seen)
    return list(islice(fresh, request.count))
