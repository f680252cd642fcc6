"""Answers the calls of KerasTuner's scripts from the database, which is all that is remembered."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from jobs.actions import external_search, pipeline, reports
from jobs.errors import StaleFence, StaleState
from jobs.models import Job, Trial
from jobs.queries import outcomes, reported
from jobs.states import FINAL, TRIAL_FINAL
from workers.chief import translate, wire
from workers.chief.presence import Address, Presence, connections
from workers.chief.suggestions import choose
from workers.node.db_threads import Lane
from workers.node.suggestion_process import Oracle, SuggestionFailed
from workers.supervise.ledger import LedgerAway

log = logging.getLogger(__name__)

HELD_SECONDS = 30.0
"""How long a script that waits for a trial is held before it is told to ask again, which it does at once."""
LOOK_SECONDS = 1.0
RETRY_SECONDS = 0.5
AFTER_FAILURE_SECONDS = 5.0
HUNG_UP = "its script hung up without a word"


class Chief:
    """One search's calls. Nothing here outlives the process but what stands in the database."""

    def __init__(self, job_id: int, *, oracle: Oracle, grace: float) -> None:
        self.job_id = job_id
        self.called = time.monotonic()
        self._oracle = oracle
        self._lane = Lane("chief")
        self._presence = Presence(grace)
        self._choosing = asyncio.Lock()
        self._changed = asyncio.Event()
        self._closing = False

    async def db[T](self, function: Callable[[], T]) -> T:
        """Run a function in the database's thread; wait for one that is away, since scripts do not retry."""
        while True:
            try:
                return await self._lane.call(function)
            except LedgerAway as error:
                log.warning("the database is away: %s", error)
                await asyncio.sleep(RETRY_SECONDS)

    def close(self) -> None:
        """Send those who wait for a trial home, to ask whoever comes next."""
        self._closing = True
        self._changed.set()

    async def tend(self, port: int) -> tuple[Job, set[Address] | None]:
        """Renew what lives, give back what does not, take the search's next step. Called every moment.

        Returns:
            The search, and who is connected, where that can be known.
        """
        connected = await asyncio.to_thread(connections, port)
        gone = self._presence.gone(connected) if connected is not None else []
        there = self._presence.there(connected) if connected is not None else []
        for attempt in gone:
            log.warning("the script of attempt %s hung up; its trial goes to the next one that asks", attempt)
            await self.db(partial(external_search.give_back, self.job_id, attempt, HUNG_UP))
        root = await self.db(lambda: _step(self.job_id, there))
        self._changed.set()
        self._changed.clear()
        return root, connected

    async def get_space(self, request: Any, peer: str) -> Any:
        """Return the space as it is known."""
        del request, peer
        search = await self.db(lambda: outcomes.outside_of(Job.objects.get(pk=self.job_id)))
        known = translate.hyperparameters(search.space, {})
        return wire.message("GetSpaceResponse")(hyperparameters=known)

    async def update_space(self, request: Any, peer: str) -> Any:
        """Take in what is new in a script's space."""
        del peer
        space = translate.config(request.hyperparameters)
        await self.db(lambda: reports.tell_space(self.job_id, space))
        return wire.message("UpdateSpaceResponse")()

    async def create_trial(self, request: Any, peer: str) -> Any:
        """Give a script the trial it holds, or the next one, once there is one."""
        answered = wire.message("CreateTrialResponse")
        until = time.monotonic() + HELD_SECONDS
        while True:
            found = await self.db(lambda: external_search.hand_out(self.job_id, request.tuner_id, host=peer))
            if isinstance(found, external_search.Held):
                self._presence.called(found.attempt.number, peer)
                name = reported.Name(found.trial.number, found.attempt.number)
                return answered(trial=await self._trial(found.trial, name))
            if found is external_search.Answer.OVER:
                return answered(trial=translate.trial("", "STOPPED"))
            if found is external_search.Answer.SUGGEST and await self._suggest():
                continue
            if self._closing or time.monotonic() > until:
                return answered(trial=translate.trial("", "IDLE"))
            await self._change(LOOK_SECONDS)

    async def _change(self, seconds: float) -> None:
        """Wait for something to change, or for the time to pass."""
        try:
            await asyncio.wait_for(self._changed.wait(), seconds)
        except TimeoutError:
            return

    async def _suggest(self) -> bool:
        """Let one trial be made; False when it could not be chosen."""
        async with self._choosing:
            asked = await self.db(lambda: external_search.question(self.job_id))
            if asked is None:
                return True  # somebody else had one made meanwhile
            try:
                values = await choose(self._oracle, asked.request)
                await self.db(lambda: external_search.suggested(self.job_id, asked, values))
            except StaleState as error:
                log.info("%s", error)
            except (SuggestionFailed, ValueError) as error:
                log.warning("choosing the next trial failed: %s", error)
                await self._change(AFTER_FAILURE_SECONDS)
                return False
        return True

    async def update_trial(self, request: Any, peer: str) -> Any:
        """Add one step's metrics."""
        name = reported.name_of(request.trial_id)
        metrics, step = dict(request.metrics), request.step
        await self.db(lambda: reports.update(self.job_id, name, metrics, step))
        self._presence.called(name.attempt, peer)
        trial = await self.db(lambda: reported.find(self.job_id, name))
        return wire.message("UpdateTrialResponse")(trial=await self._trial(trial, name))

    async def end_trial(self, request: Any, peer: str) -> Any:
        """End a trial. Of one that is not the script's any more nothing is taken, and the script goes on."""
        del peer
        name = reported.name_of(request.trial.trial_id)
        done = wire.member_of("TrialStatus", request.trial.status) == "COMPLETED"
        space = translate.config(request.trial.hyperparameters)
        values = translate.values(request.trial.hyperparameters)
        try:
            await self.db(lambda: reports.end(self.job_id, name, done=done, space=space, values=values))
        except StaleFence as refusal:
            log.warning("%s", refusal)
        self._presence.left(name.attempt)
        await self.db(lambda: _step(self.job_id, []))
        self._changed.set()
        self._changed.clear()
        return wire.message("EndTrialResponse")()

    async def get_trial(self, request: Any, peer: str) -> Any:
        """Return a trial, with what was reported under this name of it."""
        del peer
        name = reported.name_of(request.trial_id)
        trial = await self.db(lambda: reported.find(self.job_id, name))
        return wire.message("GetTrialResponse")(trial=await self._trial(trial, name))

    async def get_best_trials(self, request: Any, peer: str) -> Any:
        """Return the best trials, each named by its last attempt: scripts find their files by that."""
        del peer
        best = await self.db(lambda: reported.best(self.job_id, request.num_trials))
        named = [(trial, reported.Name(trial.number, trial.attempt)) for trial in best]
        return wire.message("GetBestTrialsResponse")(trials=[await self._trial(*one) for one in named])

    async def _trial(self, trial: Trial, name: reported.Name) -> Any:
        def read() -> Any:
            search = outcomes.outside_of(Job.objects.get(pk=self.job_id))
            observed = reported.reported(self.job_id, name)
            ended = trial.state in TRIAL_FINAL and trial.attempt == name.attempt
            return translate.trial(
                str(name),
                _STATUS.get(trial.state, "FAILED") if ended else "RUNNING",
                space=search.space,
                of=trial.values,
                reported=observed,
                maximized=[search.metric] if search.direction == "max" else [],
                best=reported.best_of(observed, search) if ended else None,
            )

        return await self.db(read)


_STATUS = {"completed": "COMPLETED", "stopped": "STOPPED"}


def _step(job_id: int, there: list[int]) -> Job:
    """Let the search go on. Its scheduler does the same; either may be dead."""
    root = external_search.beat(job_id, connected=there)
    if root.state not in FINAL:
        pipeline.advance_one(root)
        root.refresh_from_db()
    return root


Call = Callable[[Any, str], Awaitable[Any]]


def calls(chief: Chief) -> dict[str, Call]:
    """Return what answers each call of the service."""
    return {
        "GetSpace": chief.get_space,
        "UpdateSpace": chief.update_space,
        "CreateTrial": chief.create_trial,
        "UpdateTrial": chief.update_trial,
        "EndTrial": chief.end_trial,
        "GetTrial": chief.get_trial,
        "GetBestTrials": chief.get_best_trials,
    }
