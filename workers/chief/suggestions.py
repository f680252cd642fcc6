"""The next configuration for a script that asks."""

from typing import Any

from jobs.contracts.search_space import Values
from workers.node.suggestion_process import Oracle, SuggestionFailed, think


async def choose(oracle: Oracle, body: dict[str, Any]) -> Values | None:
    """Return the values of the next trial; None when the space is used up.

    Raises:
        SuggestionFailed: the request does not hold, the oracle was slow or died, or it waits for a trial.
    """
    answer = await think(oracle, body)
    if answer.suggestions:
        return answer.suggestions[0].values
    if answer.exhausted:
        return None
    raise SuggestionFailed("the algorithm waits for a trial to end")
