"""Suggests values for the next trial."""

from typing import Any

from jobs.spec.space.search_space import Values
from workers.node.suggestion_process import SuggestionFailed, SuggestionProcess, make_suggestions


async def suggest_values(process: SuggestionProcess, body: dict[str, Any]) -> Values | None:
    """Return values for the next trial; None if the space is exhausted.

    Raises:
        SuggestionFailed: no suggestion could be made, or the algorithm waits for a trial to end.
    """
    answer = await make_suggestions(process, body)
    if answer.suggestions:
        return answer.suggestions[0].values
    if answer.exhausted:
        return None
    raise SuggestionFailed("the algorithm waits for a trial to end")
