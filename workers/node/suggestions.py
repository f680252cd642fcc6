"""Answers requests for suggestions: claims the request, computes the answer, stores it."""

import asyncio
import logging
from functools import partial

from jobs.actions.search import suggest
from jobs.errors import StaleFence
from workers.node.db_threads import DatabaseThread
from workers.node.suggestion_process import SuggestionFailed, SuggestionProcess, make_suggestions
from workers.supervise.attempt_repository import DatabaseUnavailable

log = logging.getLogger(__name__)


class Suggestions:
    """Computes one answer at a time for each search. The scheduler repeats a request that is lost."""

    def __init__(self, suggestion_process: SuggestionProcess) -> None:
        self._process = suggestion_process
        self._database = DatabaseThread("suggest")
        self._answering: dict[int, asyncio.Task[None]] = {}

    def request(self, job_id: int) -> None:
        """Start to answer the search's request, unless that is already under way."""
        if job_id not in self._answering:
            task = asyncio.create_task(self._answer(job_id), name=f"suggestions for {job_id}")
            self._answering[job_id] = task
            task.add_done_callback(lambda _task: self._answering.pop(job_id, None))

    def close(self) -> None:
        """Cancel the answers under way, and end the thread."""
        for task in self._answering.values():
            task.cancel()
        self._database.close()

    async def _answer(self, job_id: int) -> None:
        try:
            claimed = await self._database.call(lambda: suggest.claim_request(job_id))
            if claimed is None:
                return
            try:
                answer = await make_suggestions(self._process, claimed.request)
                await self._database.call(lambda: suggest.add_suggestions(claimed, answer))
            # ValueError: a suggestion lies outside the space.
            except (SuggestionFailed, ValueError) as error:
                log.warning("search %s: %s", job_id, error)
                await self._database.call(partial(suggest.report_failure, claimed, str(error)))
        except (DatabaseUnavailable, StaleFence) as error:
            log.warning("the suggestions for search %s were dropped: %s", job_id, error)
