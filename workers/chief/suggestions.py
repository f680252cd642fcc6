"""The next configuration: cheap algorithms here, model-based ones in the oracle's process."""

import asyncio
from typing import Any

from pydantic import ValidationError

from jobs.spec.search_space import Values
from jobs.spec.suggest import SuggestRequest
from workers.engine.search.suggest import CHEAP, suggest
from workers.node.oracle import Oracle, SuggestionFailed


async def choose(oracle: Oracle, body: dict[str, Any]) -> Values | None:
    """Return the values of the next trial; None when the space is used up.

    Raises:
        SuggestionFailed: the request does not hold, or the oracle was slow or died.
    """
    try:
        request = SuggestRequest.model_validate(body)
    except ValidationError as error:
        raise SuggestionFailed(f"the search cannot be read: {error}") from error
    cheap = request.search.algorithm in CHEAP
    answer = await (asyncio.to_thread(suggest, request) if cheap else oracle.ask(body))
    if answer.suggestions:
        return answer.suggestions[0].values
    if answer.exhausted:
        return None
    raise SuggestionFailed("the algorithm waits for a trial to end")
