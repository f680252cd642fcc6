"""Runs one attempt's task on a runner: takes the runner, hands over the files, and withdraws them."""

import asyncio
import logging
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jobs.messages.control import Start
from jobs.messages.sandbox import SandboxRecord
from jobs.messages.task import Task
from workers.confinement.sandbox.gpus import GpuAccess
from workers.confinement.start.files import remove_tree
from workers.runner.environment import Environment
from workers.runner.registry import needs_jax
from workers.supervise.attempt.database_calls import DatabaseCalls
from workers.supervise.attempt.gpu_watch import GpuWatch
from workers.supervise.attempt.hand_over import hand_over, hand_over_in_sandbox, withdraw
from workers.supervise.attempt.held_lease import HeldLease
from workers.supervise.attempt.memory import memory_cap, row_memory
from workers.supervise.attempt.model_processes import ModelProcesses
from workers.supervise.attempt.node_context import NodeContext
from workers.supervise.attempt.prepare import WORK, with_models, with_row_memory
from workers.supervise.attempt.rival_curves import RivalCurveSender
from workers.supervise.attempt.runner_session import RunnerSession
from workers.supervise.attempt.stop_request import StopRequest
from workers.supervise.attempt_end import GIB, AttemptEnd
from workers.supervise.attempt_repository import Assignment
from workers.supervise.events.event_recorder import EventRecorder
from workers.supervise.events.event_validation import EventValidator
from workers.supervise.events.quota_watch import QuotaWatch
from workers.supervise.limits.limits import TaskLimits
from workers.supervise.pool.runner_pool import RunnerKey
from workers.supervise.pool.runner_process import RunnerProcess
from workers.supervise.pool.runner_sandbox import Sandbox, SandboxNeeds
from workers.system.pid_file import write_pid_file

log = logging.getLogger(__name__)


@dataclass
class RunnerTurn:
    """One attempt's use of a runner. Call `key`, then `run`, and `remove_work` after the attempt's end.

    Attributes:
        assignment: the attempt.
        node: the node's resources.
        calls: repeats calls to the database.
        stop_request: asks the run to yield.
        lease: suspends the run.
        ending: the attempt's end.
        end: ends the attempt.
    """

    assignment: Assignment
    node: NodeContext
    calls: DatabaseCalls
    stop_request: StopRequest
    lease: HeldLease
    ending: "asyncio.Future[AttemptEnd]"
    end: Callable[[AttemptEnd], None]
    # The folder in which a runner in a sandbox writes; other runners write into the attempt's folder.
    _work: Path | None = field(default=None, init=False)

    def key(self, task: Task, devices: tuple[str, ...], gpu_access: GpuAccess | None) -> RunnerKey:
        """Return which runners may run a task that uses GPUs."""
        needs = self._sandbox_needs(task, gpu_access)
        return RunnerKey(self.assignment.root, Environment.for_task(task), ",".join(devices) or None, needs)

    def _sandbox_needs(self, task: Task, gpu_access: GpuAccess | None) -> SandboxNeeds | None:
        if task.code is None:
            return None
        return SandboxNeeds(
            project=self.assignment.project,
            code=task.code.as_installed(),
            checkpoints=task.checkpoints,
            compile_cache=task.compile_cache or "",
            limits=self.node.sandbox_limits.run_limits(self._memory_cap(task, None)),
            gpus=gpu_access,
        )

    async def run(
        self,
        key: RunnerKey,
        task: Task,
        recorder: EventRecorder,
        validator: EventValidator,
        quotas: QuotaWatch,
        gpus: GpuWatch,
    ) -> None:
        """Run a task until the attempt has its end."""
        runner = await self._take_runner(key, task)
        if runner is None:
            return
        limits = self.node.limits if task.reads_foreign_file() else None
        cap = self._memory_cap(task, limits)
        reusable = False
        folder = self.node.attempts / str(self.assignment.attempt)
        written = (folder / WORK, runner.work_folder)
        models = self._model_processes(task, cap, recorder)
        watching = asyncio.create_task(quotas.watch_files(written, lambda: validator.stored_bytes))
        try:
            write_pid_file(folder, runner.pid)
            finished = with_row_memory(task, row_memory(cap, self.node.in_memory_bytes))
            finished = with_models(finished, await models.open(task.models, folder, runner.pid))
            start = await self._hand_over(finished, folder, runner, validator)
            session = RunnerSession(
                runner,
                recorder,
                self.stop_request,
                self.lease,
                RivalCurveSender(
                    self.assignment.job, task, self.node.repository, interval=self.node.timing.news
                ),
                quotas.pace,
                self.node.timing,
                memory_cap=cap,
                limits=limits,
                gpus=gpus,
                end=self.end,
            )
            reusable = await session.serve(start, self.ending)
        finally:
            watching.cancel()
            await models.close()
            if reusable:
                reusable = await self._withdraw(task, folder, runner)
            pool = self.node.pool
            # Ending a runner withdraws all of its access.
            await (pool.give_back(runner, key) if reusable else pool.discard(runner))

    async def _take_runner(self, key: RunnerKey, task: Task) -> RunnerProcess | None:
        """Return a runner for the task; None if the run ended before one was ready."""
        taking = asyncio.create_task(self.node.pool.take(key, needs_jax=needs_jax(task)))
        first: list[asyncio.Future[Any]] = [taking, self.ending]
        try:
            # Starting a runner may take minutes, but a stop or kill must take effect at once.
            await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
        finally:
            taking.cancel()  # no effect once it is done
        # The cancelled task may have got its runner at the same moment, and then the runner must be ended.
        await asyncio.wait([taking])
        return None if taking.cancelled() else taking.result()

    def _memory_cap(self, task: Task, limits: TaskLimits | None) -> int:
        """Return the runner's largest memory, in bytes."""
        cap = memory_cap(task, self.node.memory_per_slot * self.assignment.slots)
        return cap if limits is None else min(cap, int(limits.memory_gib * GIB))

    def _model_processes(self, task: Task, cap: int, recorder: EventRecorder) -> ModelProcesses:
        """Return what executes a task's models; each may use as much memory as the run."""
        return ModelProcesses(
            self.node.pool,
            self.node.sandbox_limits.run_limits(cap),
            task.threads,
            record=self._record_sandbox,
            recorder=recorder,
            fail=lambda error: self.end(AttemptEnd.from_error(error)),
        )

    async def _hand_over(
        self, task: Task, folder: Path, runner: RunnerProcess, validator: EventValidator
    ) -> Start:
        """Give a runner the task's files."""
        if runner.sandbox is not None:
            return await self._hand_over_in_sandbox(task, runner, runner.sandbox, validator)
        start = await asyncio.to_thread(hand_over, task, folder, runner.access)
        if runner.access is not None:
            validator.owner = runner.access.user.uid
        return start

    async def _hand_over_in_sandbox(
        self, task: Task, runner: RunnerProcess, sandbox: Sandbox, validator: EventValidator
    ) -> Start:
        attempt = self.assignment.attempt
        self._work = sandbox.work / str(attempt)
        start = await asyncio.to_thread(hand_over_in_sandbox, task, attempt, sandbox)
        owner = os.geteuid() if runner.access is None else runner.access.user.uid
        validator.work_in(self._work, owner)
        if (checkpoints := sandbox.checkpoints) is not None:
            validator.find_checkpoints(checkpoints.place)
        # Before the task begins: a run of which no sandbox is recorded had none.
        await self._record_sandbox(sandbox.process.record)
        return start

    async def _record_sandbox(self, record: SandboxRecord) -> None:
        attempt = self.assignment.attempt
        await self.calls.repeat_until_end(lambda: self.node.repository.record_sandbox(attempt, record))

    async def _withdraw(self, task: Task, folder: Path, runner: RunnerProcess) -> bool:
        """Withdraw a runner's access to the task's files; return whether it has none left."""
        try:
            if runner.sandbox is not None:
                await asyncio.to_thread(runner.sandbox.withdraw, self.assignment.attempt)
            elif runner.access is not None:
                await asyncio.to_thread(withdraw, task, folder, runner.access)
        except OSError as error:
            log.warning("the runner of attempt %s is ended: %s", self.assignment.attempt, error)
            return False
        return True

    async def remove_work(self) -> None:
        """Delete the folder in which a sandbox wrote the attempt's files, after they are stored."""
        if self._work is not None:
            await asyncio.to_thread(remove_tree, self._work)
            self.node.pool.forget(self._work.parent)
