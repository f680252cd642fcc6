"""Supervises one attempt from its claim to its end."""

import asyncio
import shutil
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from structlog.contextvars import bind_contextvars

from jobs.messages.events import Warned
from jobs.messages.task import OwnCode, Task
from jobs.states import Desired, Outcome
from workers.confinement.environments.folder import Held
from workers.supervise.attempt import prepare
from workers.supervise.attempt.attempt_gpus import AttemptGpus, HeldByOthers
from workers.supervise.attempt.database_calls import DatabaseCalls
from workers.supervise.attempt.held_lease import HeldLease
from workers.supervise.attempt.node_context import NodeContext
from workers.supervise.attempt.packages import Installed
from workers.supervise.attempt.runner_turn import RunnerTurn
from workers.supervise.attempt.stop_request import StopRequest
from workers.supervise.attempt_end import AttemptEnd
from workers.supervise.attempt_repository import Assignment
from workers.supervise.checkpoints.uploads import CheckpointUploads
from workers.supervise.events.event_recorder import EventRecorder
from workers.supervise.events.event_validation import EventValidator
from workers.supervise.events.quota_watch import QuotaWatch
from workers.supervise.events.spool import Spool

NO_GPU = "no_gpu"
"""The code of runs whose GPU JAX cannot use."""


class AttemptSupervisor:
    """Runs one claimed attempt. `run` never raises: every error becomes the attempt's end."""

    def __init__(self, assignment: Assignment, node: NodeContext, *, claimed_at: float) -> None:
        self.assignment = assignment
        self._node = node
        self._stop_request = StopRequest()
        self._ending: asyncio.Future[AttemptEnd] = asyncio.get_running_loop().create_future()
        self._calls = DatabaseCalls(assignment.attempt, node.repository, node.timing, self._ending)
        self.lease = HeldLease(claimed_at, node.timing.lease_validity)
        self._turn = RunnerTurn(
            assignment, node, self._calls, self._stop_request, self.lease, self._ending, self.end
        )
        self._has_code = True
        self._packages: Installed | None = None
        self._uploads: CheckpointUploads | None = None
        self._recorder: EventRecorder | None = None

    @property
    def ended(self) -> bool:
        """Whether the run has ended; its last events may still be unwritten."""
        return self._ending.done()

    def lease_renewed(self, requested_at: float, desired: Desired) -> None:
        """Note a renewal requested at a time of `jobs.lease_clock`; apply the owner's desired state."""
        self.lease.renewed(requested_at)
        if desired is Desired.KILLED:
            self.end(AttemptEnd(Outcome.KILLED))
        else:
            self._stop_request.set_desired(desired)

    def drain(self) -> None:
        """Have the runner write a checkpoint and yield, because the node shuts down."""
        self._stop_request.drain()

    def event_lag(self) -> float:
        """Return for how long its oldest event waits that is not in the database, in seconds."""
        return 0.0 if self._recorder is None else self._recorder.lag()

    def end(self, ending: AttemptEnd) -> None:
        """End the run now; the first ending wins."""
        if not self._ending.done():
            self._ending.set_result(ending)

    def skip_uploads(self) -> None:
        """Write the end without waiting for the copies of the last checkpoints."""
        if self._uploads is not None:
            self._uploads.skip()

    async def run(self) -> None:
        """Prepare the task, run it, write all events and the end, and delete the attempt's folder."""
        # Of this task, and those that it creates.
        bind_contextvars(job=self.assignment.job, attempt=self.assignment.attempt)
        folder = self._node.attempts / str(self.assignment.attempt)
        try:
            ending = await self._run_in(folder)
        # An error here is the worker's fault, not the job's. It must become an end, or the job would wait
        # until the lease expires.
        except Exception as error:  # noqa: BLE001
            ending = AttemptEnd.from_error(error)
        ending = self._blame_machine(ending)
        self.end(ending)
        if self._uploads is not None:
            await self._uploads.finish(ending)
        await self._calls.finish(ending)
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
        await self._turn.remove_work()

    def _blame_machine(self, ending: AttemptEnd) -> AttemptEnd:
        """Place a run again whose GPU the machine could not provide, and report the GPU to the node."""
        # A program of a user could write this code to keep the worker from all work.
        if ending.code != NO_GPU or self._has_code:
            return ending
        self._node.gpu_failed(ending.message)
        return replace(ending, outcome=Outcome.LOST)

    async def _run_in(self, folder: Path) -> AttemptEnd:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True, mode=0o700)
        loading = asyncio.create_task(prepare.load(self.assignment, self._node, self._calls, folder))
        first: list[asyncio.Future[Any]] = [loading, self._ending]
        await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
        if not loading.done():
            loading.cancel()
            return self._ending.result()
        task = loading.result()
        self._has_code = task.code is not None
        # The owner may have stopped the job while its files were downloaded.
        if self._stop_request.requested:
            self.end(self._stop_request.ending())
        gpus = AttemptGpus(self._node)
        try:
            await gpus.allocate(task, self.assignment, self._calls)
            return self._ending.result() if self.ended else await self._run(task, folder, gpus)
        except HeldByOthers as error:
            # A stop that came first counts.
            return self._ending.result() if self.ended else AttemptEnd.gpu_held(str(error))
        finally:
            gpus.give_back()

    async def _run(self, task: Task, folder: Path, gpus: AttemptGpus) -> AttemptEnd:
        node, attempt = self._node, self.assignment.attempt
        key = self._turn.key(task, gpus.used, gpus.access)
        spool = Spool(folder / "spool.jsonl")
        work = folder / prepare.WORK
        checkpoints = Path(task.checkpoints or work)
        validator = EventValidator(attempt, work, checkpoints, node.checkpoints, node.repository)
        quotas = QuotaWatch(attempt, node.repository, node.timing, self.end)
        recorder = EventRecorder(attempt, spool, node.repository, validator, node.timing, quotas)
        self._recorder = recorder
        recording = asyncio.create_task(recorder.run())
        recording.add_done_callback(self._on_recorded)
        sharing = asyncio.create_task(quotas.follow_events())
        uploading = self._start_uploads(folder, recorder)
        try:
            if gpus.warning:
                recorder.add(Warned(time=time.time(), code="no_gpu", message=gpus.warning))
            if (ready := await self._install_packages(task, recorder)) is not None:
                await self._turn.run(key, ready, recorder, validator, quotas, gpus.watch)
            # Only now: the end of the session reads the last log lines.
            recorder.close()
            await recording
        finally:
            sharing.cancel()
            uploading.cancel()
            recording.cancel()
            # An upload that was under way is given back, and made again before the end is written.
            await asyncio.wait([uploading])
            spool.close()
            if self._packages is not None:
                self._packages.release()
        return self._ending.result()

    def _start_uploads(self, folder: Path, recorder: EventRecorder) -> "asyncio.Task[None]":
        """Begin to copy the checkpoints that the database has, if other machines need copies."""
        node = self._node
        if node.copies is None:
            return asyncio.create_task(asyncio.sleep(0))
        self._uploads = CheckpointUploads(
            self.assignment.attempt, node.copies, node.repository, node.timing, folder, recorder.add
        )
        recorder.on_checkpoints = self._uploads.add
        return asyncio.create_task(self._uploads.run())

    async def _install_packages(self, task: Task, recorder: EventRecorder) -> Task | None:
        """Install the task's packages; return the task, or None if the run has ended."""
        if self._node.packages is not None and (task.code is not None or task.models):
            installed = await self._node.packages.install(task, recorder, self._stop_request, self._ending)
            if isinstance(installed, AttemptEnd):
                self.end(installed)
            else:
                self._packages, task = installed, prepare.with_failures(task, installed.failures)
                if installed.recorded is not None and not self.ended:
                    await self._record_packages(*installed.recorded)
        return None if self.ended else task

    async def _record_packages(self, code: OwnCode, packages: Held) -> None:
        """Record the run's packages before it begins: later runs of the code get the same."""
        attempt, repository = self.assignment.attempt, self._node.repository
        installed = packages.facts.as_set()
        await self._calls.repeat_until_end(
            lambda: repository.record_packages(attempt, installed, code.choice)
        )

    def _on_recorded(self, recording: "asyncio.Task[None]") -> None:
        """End the run if its events can no longer be recorded: the attempt is stale, or a disk is full."""
        if not recording.cancelled() and (error := recording.exception()) is not None:
            self.end(AttemptEnd.from_error(error))
