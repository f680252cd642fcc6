"""Answers calls from KerasTuner's scripts. All state that must outlive the process is in the database."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from jobs.actions.runs import pipeline
from jobs.actions.search import external_search, script_reports
from jobs.errors import StaleFence, StaleState
from jobs.messages.event_cost import MESSAGE_COST
from jobs.models import Job, Trial
from jobs.queries.search import script_reports as queries
from jobs.queries.search.external_search import external_payload
from jobs.states import FINAL, TRIAL_FINAL
from workers.chief import conversion, protocol
from workers.chief.connection_tracker import Address, ConnectionTracker, open_connections
from workers.chief.report_quota import ReportQuota
from workers.chief.suggestions import suggest_values
from workers.node.db_threads import DatabaseThread
from workers.node.suggestion_process import SuggestionFailed, SuggestionProcess
from workers.supervise.attempt_repository import DatabaseUnavailable

log = logging.getLogger(__name__)

# How long a call for a trial is held open. Without it, KerasTuner would repeat the call at once, again and
# again.
HOLD_SECONDS = 30.0
POLL_SECONDS = 1.0
RETRY_SECONDS = 0.5
FAILURE_PAUSE_SECONDS = 5.0
DISCONNECTED = "its script disconnected without ending the trial"


class Chief:
    """Answers the calls for one search. A restarted chief continues from the database."""

    def __init__(self, job_id: int, *, suggestion_process: SuggestionProcess, grace: float) -> None:
        self.job_id = job_id
        self.last_call = time.monotonic()
        self._suggestion_process = suggestion_process
        self._database = DatabaseThread("chief")
        self._connections = ConnectionTracker(grace)
        self._quota = ReportQuota(job_id, self.db)
        # Calls that wait for a trial all ask for suggestions at the same time; one trial is created at a
        # time.
        self._suggestion_lock = asyncio.Lock()
        self._changed = asyncio.Event()
        self._closing = False

    async def db[T](self, function: Callable[[], T]) -> T:
        """Run a function in the database thread. It is retried here, because scripts do not retry."""
        while True:
            try:
                # Without a timeout: a call that is repeated while it may still take effect would count twice.
                return await self._database.call(function, timeout=None)
            except DatabaseUnavailable as error:
                log.warning("the database is unavailable: %s", error)
                await asyncio.sleep(RETRY_SECONDS)

    def close(self) -> None:
        """Answer the waiting calls. Scripts that asked for a trial repeat their calls at the next chief."""
        self._closing = True
        self._quota.lift()
        self._changed.set()

    async def maintain(self, port: int) -> tuple[Job, set[Address] | None]:
        """Renew leases for connected scripts, release trials from disconnected ones, and advance the search.

        Returns:
            The search, and the connected addresses if the system can report them.
        """
        connected = await asyncio.to_thread(open_connections, port)
        disconnected = self._connections.pop_disconnected(connected) if connected is not None else []
        present = self._connections.connected(connected) if connected is not None else []
        for attempt in disconnected:
            log.warning(
                "the script of attempt %s disconnected; its trial goes to the next script that asks", attempt
            )
            await self.db(partial(external_search.release_trial, self.job_id, attempt, DISCONNECTED))
        await self._quota.follow_share()
        root = await self.db(lambda: _advance(self.job_id, present))
        # Wakes the calls that wait now. Later ones must wait for the next change.
        self._changed.set()
        self._changed.clear()
        return root, connected

    async def get_space(self, request: Any, peer: str) -> Any:
        """Return the search space as far as it is known."""
        del request, peer
        search = await self.db(lambda: external_payload(Job.objects.get(pk=self.job_id)).search)
        message = conversion.hyperparameters(search.space, {})
        return protocol.message("GetSpaceResponse")(hyperparameters=message)

    async def update_space(self, request: Any, peer: str) -> Any:
        """Add a script's new hyperparameters to the search space."""
        space = conversion.config(request.hyperparameters)
        async with self._quota.turn(peer, MESSAGE_COST):
            await self.db(lambda: script_reports.add_space(self.job_id, space))
        return protocol.message("UpdateSpaceResponse")()

    async def create_trial(self, request: Any, peer: str) -> Any:
        """Return the trial that the script holds, or else wait for the next one."""
        response = protocol.message("CreateTrialResponse")
        deadline = time.monotonic() + HOLD_SECONDS
        while True:
            claim = await self.db(
                lambda: external_search.claim_trial(self.job_id, request.tuner_id, host=peer)
            )
            if isinstance(claim, external_search.HeldTrial):
                self._connections.record_call(claim.attempt.number, peer)
                name = queries.TrialName(claim.trial.number, claim.attempt.number)
                return response(trial=await self._trial(claim.trial, name))
            if claim is external_search.NoTrial.OVER:
                return response(trial=conversion.trial("", "STOPPED"))
            if claim is external_search.NoTrial.SUGGEST and await self._suggest():
                continue
            if self._closing or time.monotonic() > deadline:
                return response(trial=conversion.trial("", "IDLE"))
            await self._wait_for_change(POLL_SECONDS)

    async def _wait_for_change(self, seconds: float) -> None:
        try:
            await asyncio.wait_for(self._changed.wait(), seconds)
        except TimeoutError:
            return

    async def _suggest(self) -> bool:
        """Create one trial; return False if no values could be suggested."""
        async with self._suggestion_lock:
            # Read again under the lock: the call that held it before may have created a trial.
            asked = await self.db(lambda: external_search.suggestion_request(self.job_id))
            if asked is None:
                return True
            try:
                values = await suggest_values(self._suggestion_process, asked.request)
                await self.db(lambda: external_search.add_suggestion(self.job_id, asked, values))
            # The search was stopped or changed meanwhile; the caller reads its new state.
            except StaleState as error:
                log.info("%s", error)
            except (SuggestionFailed, ValueError) as error:
                log.warning("suggesting the next trial failed: %s", error)
                await self._wait_for_change(FAILURE_PAUSE_SECONDS)
                return False
        return True

    async def update_trial(self, request: Any, peer: str) -> Any:
        """Record one step's metrics."""
        name = queries.parse_name(request.trial_id)
        metrics, step = dict(request.metrics), request.step
        async with self._quota.turn(peer, MESSAGE_COST + len(metrics)):
            await self.db(lambda: script_reports.record_metrics(self.job_id, name, metrics, step))
        self._connections.record_call(name.attempt, peer)
        trial = await self.db(lambda: queries.find_trial(self.job_id, name))
        return protocol.message("UpdateTrialResponse")(trial=await self._trial(trial, name))

    async def end_trial(self, request: Any, peer: str) -> Any:
        """End a trial.

        A report for a trial that the script no longer holds is ignored, and the script continues.
        """
        name = queries.parse_name(request.trial.trial_id)
        done = protocol.member_of("TrialStatus", request.trial.status) == "COMPLETED"
        space = conversion.config(request.trial.hyperparameters)
        values = conversion.values(request.trial.hyperparameters)
        # An error would end the script, which can still run other trials.
        try:
            async with self._quota.turn(peer, MESSAGE_COST):
                await self.db(
                    lambda: script_reports.end_trial(self.job_id, name, done=done, space=space, values=values)
                )
        except StaleFence as error:
            log.warning("%s", error)
        self._connections.forget(name.attempt)
        await self.db(lambda: _advance(self.job_id, []))
        self._changed.set()
        self._changed.clear()
        return protocol.message("EndTrialResponse")()

    async def get_trial(self, request: Any, peer: str) -> Any:
        """Return a trial with the metrics that were reported under this name."""
        del peer
        name = queries.parse_name(request.trial_id)
        trial = await self.db(lambda: queries.find_trial(self.job_id, name))
        return protocol.message("GetTrialResponse")(trial=await self._trial(trial, name))

    async def get_best_trials(self, request: Any, peer: str) -> Any:
        """Return the best trials, each named by its last attempt: scripts name their files by it."""
        del peer
        best = await self.db(lambda: queries.best_reported_trials(self.job_id, request.num_trials))
        named = [(trial, queries.TrialName(trial.number, trial.attempt)) for trial in best]
        return protocol.message("GetBestTrialsResponse")(
            trials=[await self._trial(*entry) for entry in named]
        )

    async def _trial(self, trial: Trial, name: queries.TrialName) -> Any:
        def read() -> Any:
            search = external_payload(Job.objects.get(pk=self.job_id)).search
            observed = queries.reported_values(self.job_id, name)
            # The trial may have ended under another attempt. For this one it has not, so the script
            # continues.
            ended = trial.state in TRIAL_FINAL and trial.attempt == name.attempt
            return conversion.trial(
                str(name),
                _STATUS.get(trial.state, "FAILED") if ended else "RUNNING",
                space=search.space,
                values_by_name=trial.values,
                reported=observed,
                maximized=[search.metric] if search.direction == "max" else [],
                best=queries.best_score(observed, search) if ended else None,
            )

        return await self.db(read)


_STATUS = {"completed": "COMPLETED", "stopped": "STOPPED"}


def _advance(job_id: int, connected: list[int]) -> Job:
    """Advance the search. The scheduler does the same, so the search continues if either is down."""
    root = external_search.heartbeat(job_id, connected=connected)
    if root.state not in FINAL:
        pipeline.advance_one(root)
        root.refresh_from_db()
    return root


CallHandler = Callable[[Any, str], Awaitable[Any]]


def call_handlers(chief: Chief) -> dict[str, CallHandler]:
    """Return a handler for each call in the service."""
    return {
        "GetSpace": chief.get_space,
        "UpdateSpace": chief.update_space,
        "CreateTrial": chief.create_trial,
        "UpdateTrial": chief.update_trial,
        "EndTrial": chief.end_trial,
        "GetTrial": chief.get_trial,
        "GetBestTrials": chief.get_best_trials,
    }
