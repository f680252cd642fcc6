"""One attempt, from its claim to its end."""

import asyncio
import logging
import shutil
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jobs.contracts.control import Start
from jobs.contracts.task import Task
from jobs.errors import StaleFence, StaleState
from jobs.states import Desired, Outcome
from workers.runner.environment import Environment
from workers.runner.registry import WITHOUT_JAX
from workers.supervise.backoff import Backoff
from workers.supervise.devices import Devices
from workers.supervise.endings import GIB, Ending
from workers.supervise.event_validation import Vetting
from workers.supervise.ledger import Assignment, Ledger, LedgerAway
from workers.supervise.orders import Orders
from workers.supervise.pool import Key, RunnerPool
from workers.supervise.recorder import Recorder
from workers.supervise.rival_scores import News
from workers.supervise.session import Session
from workers.supervise.spool import Spool
from workers.supervise.timing import Timing

log = logging.getLogger(__name__)

REFUSALS = 5
"""How often an end that does not fit the job's state is tried before the reaper gets it."""


@dataclass(frozen=True)
class Workplace:
    """What every attempt on this node shares."""

    ledger: Ledger
    pool: RunnerPool
    devices: Devices
    timing: Timing
    attempts: Path
    checkpoints: Path
    compile_caches: Path
    threads_per_slot: int
    memory_per_slot: int


class Supervision:
    """Runs one claimed attempt. `run` never raises: whatever happens becomes the attempt's ending."""

    def __init__(self, assignment: Assignment, place: Workplace, *, claimed_at: float) -> None:
        self.assignment = assignment
        self._place = place
        self._orders = Orders()
        self._ending: asyncio.Future[Ending] = asyncio.get_running_loop().create_future()
        self.trusted_until = claimed_at + place.timing.trust

    @property
    def over(self) -> bool:
        """Whether the run itself has ended; its events may still be on their way."""
        return self._ending.done()

    def renewed(self, asked_at: float, desired: Desired) -> None:
        """The lease was extended by a call begun at `asked_at` (monotonic); the owner wants `desired`."""
        self.trusted_until = asked_at + self._place.timing.trust
        if desired is Desired.KILLED:
            self.end(Ending(Outcome.KILLED))
        else:
            self._orders.want(desired)

    def leave(self) -> None:
        """The node shuts down: write a checkpoint and let somebody else go on."""
        self._orders.leave()

    def end(self, ending: Ending) -> None:
        """End it now in this way, unless it has ended already."""
        if not self._ending.done():
            self._ending.set_result(ending)

    async def run(self) -> None:
        """See it through: prepare, run, flush, finish, clean up."""
        folder = self._place.attempts / str(self.assignment.attempt)
        try:
            ending = await self._run_in(folder)
        except Exception as error:  # noqa: BLE001  the one handler round a run: our fault, not the user's
            ending = Ending.because(error)
        self.end(ending)
        await self._finish(ending)
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)

    async def _run_in(self, folder: Path) -> Ending:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True, mode=0o700)
        preparing = asyncio.create_task(self._prepare(folder))
        first: list[asyncio.Future[Any]] = [preparing, self._ending]
        await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
        if not preparing.done():
            preparing.cancel()
            return self._ending.result()
        task = preparing.result()
        if self._orders.given:
            self.end(self._orders.ending())  # wanted back before anything began
        devices = self._place.devices.take(self.assignment.slots)
        try:
            return self._ending.result() if self.over else await self._run(task, folder, devices)
        finally:
            self._place.devices.give_back(devices)

    async def _prepare(self, folder: Path) -> Task:
        threads = self._place.threads_per_slot * self.assignment.slots
        task = await self._patiently(
            lambda: self._place.ledger.task_for(self.assignment.attempt, folder=folder, threads=threads)
        )
        if task.compile_cache is None:
            cache = self._place.compile_caches / self.assignment.cache
            task = task.model_copy(update={"compile_cache": str(cache)})
        (folder / "spec.json").write_text(task.model_dump_json())
        return task

    async def _run(self, task: Task, folder: Path, devices: tuple[str, ...]) -> Ending:
        place = self._place
        key = Key(self.assignment.root, Environment.of(task), ",".join(devices) or None)
        spool = Spool(folder / "spool.jsonl")
        vetting = Vetting(folder, place.checkpoints, place.ledger)
        recorder = Recorder(self.assignment.attempt, spool, place.ledger, vetting, place.timing)
        recording = asyncio.create_task(recorder.run())
        recording.add_done_callback(self._on_recorded)
        try:
            await self._on_runner(key, recorder, task, Start(task=str(folder / "spec.json")))
            recorder.close()
            await recording
        finally:
            recording.cancel()
            spool.close()
        return self._ending.result()

    async def _on_runner(self, key: Key, recorder: Recorder, task: Task, start: Start) -> None:
        pool = self._place.pool
        taking = asyncio.create_task(pool.take(key, needs_jax=task.kind not in WITHOUT_JAX))
        first: list[asyncio.Future[Any]] = [taking, self._ending]
        try:
            await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
        finally:
            taking.cancel()  # does nothing to one that is done
        await asyncio.wait([taking])
        if taking.cancelled():
            return
        runner = taking.result()
        reusable = False
        try:
            session = Session(
                runner,
                recorder,
                self._orders,
                News(self.assignment.job, task, self._place.ledger, every=self._place.timing.news),
                self._place.timing,
                memory_cap=self._memory_cap(task),
                end=self.end,
            )
            reusable = await session.serve(start, self._ending)
        finally:
            await (pool.give_back(runner, key) if reusable else pool.discard(runner))

    def _on_recorded(self, recording: "asyncio.Task[None]") -> None:
        """The database refused us, or a disk is full: there is no point in going on."""
        if not recording.cancelled() and (error := recording.exception()) is not None:
            self.end(Ending.because(error))

    def _memory_cap(self, task: Task) -> int:
        spec = getattr(task, "spec", None)
        asked = None if spec is None else spec.resources.memory_gib
        return int(asked * GIB) if asked else self._place.memory_per_slot * self.assignment.slots

    async def _finish(self, ending: Ending) -> None:
        """Write the ending. With the database away this waits, or the reaper is faster."""
        attempt, refused = self.assignment.attempt, 0
        backoff = Backoff(self._place.timing.retry_first, self._place.timing.retry_limit)
        while ending.ours and refused < REFUSALS:
            try:
                await self._place.ledger.finish(attempt, ending)
                return
            except StaleFence as error:
                log.warning("%s", error)
                return
            except StaleState as error:  # the job's state moves at this moment; the next try sees the new one
                refused += 1
                log.warning("attempt %s cannot end as %s: %s", attempt, ending.outcome, error)
            except LedgerAway as error:
                log.warning("attempt %s waits for the database to end: %s", attempt, error)
            await asyncio.sleep(backoff.next())

    async def _patiently[T](self, call: Callable[[], Awaitable[T]]) -> T:
        backoff = Backoff(self._place.timing.retry_first, self._place.timing.retry_limit)
        while True:
            try:
                return await call()
            except LedgerAway as error:
                log.warning("attempt %s: %s", self.assignment.attempt, error)
                await asyncio.sleep(backoff.next())
