"""Answers requests for suggestions: cheap algorithms here, model-based ones in the oracle's process."""

import asyncio
import logging

from jobs.actions import suggest
from jobs.errors import StaleFence
from workers.node.db_threads import Lane
from workers.node.suggestion_process import Oracle, SuggestionFailed, think
from workers.supervise.ledger import LedgerAway

log = logging.getLogger(__name__)


class Suggestions:
    """One answer at a time for each search. What is lost here, the scheduler asks for again."""

    def __init__(self, oracle: Oracle) -> None:
        self._oracle = oracle
        self._lane = Lane("suggest")
        self._answering: dict[int, asyncio.Task[None]] = {}

    def asked(self, job_id: int) -> None:
        """Some search may want configurations."""
        if job_id not in self._answering:
            task = asyncio.create_task(self._answer(job_id), name=f"suggestions for {job_id}")
            self._answering[job_id] = task
            task.add_done_callback(lambda _task: self._answering.pop(job_id, None))

    def close(self) -> None:
        """Drop what is being thought about."""
        for task in self._answering.values():
            task.cancel()

    async def _answer(self, job_id: int) -> None:
        try:
            ticket = await self._lane.call(lambda: suggest.claim(job_id))
            if ticket is None:
                return
            try:
                answer = await think(self._oracle, ticket.request)
                await self._lane.call(lambda: suggest.add(ticket, answer))
            except (SuggestionFailed, ValueError) as error:  # ValueError: values outside the space
                log.warning("search %s: %s", job_id, error)
                text = str(error)
                await self._lane.call(lambda: suggest.failed(ticket, text))
        except (LedgerAway, StaleFence) as error:
            log.warning("suggestions for %s are dropped: %s", job_id, error)
