"""Supervises one attempt from its claim to its end."""

import asyncio
import hashlib
import logging
import os
import shutil
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jobs.contracts.control import Start
from jobs.contracts.events import Warned
from jobs.contracts.mesh import MeshSpec
from jobs.contracts.sandbox import SandboxRecord
from jobs.contracts.task_parts import OwnCode, Task
from jobs.errors import StaleFence, StaleState
from jobs.states import Desired, Outcome
from workers.confinement.environments.folder import Held
from workers.confinement.sandbox.gpus import GpuAccess, NoGpuAccess
from workers.runner.environment import Environment
from workers.runner.registry import needs_jax, runs_program
from workers.supervise.attempt.attempt_end import GIB, AttemptEnd
from workers.supervise.attempt.attempt_repository import (
    Assignment,
    AttemptRepository,
    DatabaseUnavailable,
)
from workers.supervise.attempt.devices import Devices
from workers.supervise.attempt.hand_over import WORK, hand_over, withdraw
from workers.supervise.attempt.model_processes import ModelProcesses
from workers.supervise.attempt.packages import Installed, Packages
from workers.supervise.attempt.rival_curves import RivalCurveSender
from workers.supervise.attempt.runner_session import RunnerSession
from workers.supervise.attempt.stop_request import StopRequest
from workers.supervise.attempt.timing import Timing
from workers.supervise.events.event_recorder import EventRecorder
from workers.supervise.events.event_validation import EventValidator
from workers.supervise.events.quota_watch import QuotaWatch
from workers.supervise.events.spool import Spool
from workers.supervise.limits.limits import TaskLimits
from workers.supervise.limits.sandbox_limits import SandboxLimits
from workers.supervise.pool.backoff import Backoff
from workers.supervise.pool.runner_pool import RunnerKey, RunnerPool
from workers.supervise.pool.runner_process import RunnerProcess
from workers.supervise.pool.runner_sandbox import SandboxNeeds
from workers.supervise.pool.sandbox_folders import remove_tree
from workers.supervise.pool.sandbox_gpus import SandboxGpus
from workers.system.pid_file import write_pid_file

log = logging.getLogger(__name__)

IN_MEMORY_VARIABLE = "TRAINYARD_IN_MEMORY_BYTES"
"""Size up to which the rows of a table are in memory while a model trains."""
IN_MEMORY_SHARE = 0.25
"""The same as a share of a run's memory, which has columns, encoded rows and copies of rows at one time."""
NO_GPU_FOR_VERSIONS = "Versions that need code are loaded on the CPU, in a sandbox each."
NO_GPU_IN_SANDBOX = "This run uses the CPU: its code runs in a sandbox, which gets no GPU, because "
MAX_REFUSALS = 5
"""How often an end that the job's state refuses is tried before it is left to the reaper."""


def in_memory_bytes(environment: Mapping[str, str] = os.environ) -> int | None:
    """Return the size up to which the environment keeps rows in memory; None for a share of each run's.

    Raises:
        ValueError: it is not a whole number.
    """
    text = environment.get(IN_MEMORY_VARIABLE)
    if not text:
        return None
    if not text.isdecimal():
        raise ValueError(f"{IN_MEMORY_VARIABLE}={text!r}: give a number of bytes, such as {4 * GIB}")
    return int(text)


def row_memory(cap: int, given: int | None) -> int:
    """Return the size up to which the rows of a table are kept in memory.

    Args:
        cap: the memory that the run may use, in bytes.
        given: the size that the environment sets.
    """
    return int(cap * IN_MEMORY_SHARE) if given is None else given


@dataclass(frozen=True)
class NodeContext:
    """The resources that all attempts on this node share."""

    repository: AttemptRepository
    pool: RunnerPool
    devices: Devices
    timing: Timing
    attempts: Path
    checkpoints: Path
    compile_caches: Path
    threads_per_slot: int
    memory_per_slot: int
    limits: TaskLimits = field(default_factory=TaskLimits.from_environment)
    """The limits of tasks that read files from outside."""
    sandbox_limits: SandboxLimits = field(default_factory=SandboxLimits.from_environment)
    """The limits of tasks with code of users."""
    packages: Packages | None = None
    """Installs the packages of code of users."""
    in_memory_bytes: int | None = field(default_factory=in_memory_bytes)
    """The size up to which runs keep the rows of a table in memory; None for `IN_MEMORY_SHARE`."""
    no_gpu: str | None = None
    """Why GPUs of the machine are not used, if it has some."""
    sandbox_gpus: SandboxGpus = field(default_factory=lambda: SandboxGpus({}))
    """The GPUs for runs with code of users."""


def memory_cap(task: Task, share: int) -> int:
    """Return the largest memory of a run, in bytes: the value in its spec, else the share of its slots."""
    spec = getattr(task, "spec", None)
    asked_gib = None if spec is None else spec.resources.memory_gib
    return int(asked_gib * GIB) if asked_gib else share


class AttemptSupervisor:
    """Runs one claimed attempt. `run` never raises: every error becomes the attempt's end."""

    def __init__(self, assignment: Assignment, node: NodeContext, *, claimed_at: float) -> None:
        self.assignment = assignment
        self._node = node
        self._stop_request = StopRequest()
        self._ending: asyncio.Future[AttemptEnd] = asyncio.get_running_loop().create_future()
        # Of a task with code of users; other tasks write into the attempt's folder.
        self._work: Path | None = None
        self._packages: Installed | None = None
        # Of a task with code of users; other runners open the devices by themselves.
        self._gpu_access: GpuAccess | None = None
        self._no_gpu = ""
        self.lease_valid_until = claimed_at + node.timing.lease_validity

    @property
    def ended(self) -> bool:
        """Whether the run has ended; its last events may still be unwritten."""
        return self._ending.done()

    def lease_renewed(self, requested_at: float, desired: Desired) -> None:
        """Note a renewal requested at `requested_at` (monotonic), and apply the owner's desired state."""
        self.lease_valid_until = requested_at + self._node.timing.lease_validity
        if desired is Desired.KILLED:
            self.end(AttemptEnd(Outcome.KILLED))
        else:
            self._stop_request.set_desired(desired)

    def drain(self) -> None:
        """Have the runner write a checkpoint and yield, because the node shuts down."""
        self._stop_request.drain()

    def end(self, ending: AttemptEnd) -> None:
        """End the run now; the first ending wins."""
        if not self._ending.done():
            self._ending.set_result(ending)

    async def run(self) -> None:
        """Prepare the task, run it, write all events and the end, and delete the attempt's folder."""
        folder = self._node.attempts / str(self.assignment.attempt)
        try:
            ending = await self._run_in(folder)
        # An error here is the worker's fault, not the job's. It must become an end, or the job would wait
        # until the lease expires.
        except Exception as error:  # noqa: BLE001
            ending = AttemptEnd.from_error(error)
        self.end(ending)
        await self._finish(ending)
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
        if self._work is not None:
            await asyncio.to_thread(remove_tree, self._work)
            self._node.pool.forget(self._work.parent)

    async def _run_in(self, folder: Path) -> AttemptEnd:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True, mode=0o700)
        preparing = asyncio.create_task(self._prepare(folder))
        first: list[asyncio.Future[Any]] = [preparing, self._ending]
        await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
        if not preparing.done():
            preparing.cancel()
            return self._ending.result()
        task = preparing.result()
        # The owner may have stopped the job while its files were downloaded.
        if self._stop_request.requested:
            self.end(self._stop_request.ending())
        devices = self._take_devices(task)
        try:
            used = devices
            if task.code is not None and devices:
                await self._open_to_sandbox(devices, task.code)
                used = devices if self._gpu_access is not None else ()
            return self._ending.result() if self.ended else await self._run(task, folder, used)
        finally:
            self._node.devices.give_back(devices)

    async def _open_to_sandbox(self, devices: tuple[str, ...], code: OwnCode) -> None:
        """Find how the run of a task with code uses its GPUs, or why it cannot."""
        sandboxes = self._node.pool.sandboxes
        if sandboxes is None:
            return
        level = await sandboxes.require(code.minimum)
        try:
            self._gpu_access = await asyncio.to_thread(
                self._node.sandbox_gpus.access, devices, level, network=code.network
            )
        except NoGpuAccess as error:
            self._no_gpu = f"{NO_GPU_IN_SANDBOX}{error}."

    def _take_devices(self, task: Task) -> tuple[str, ...]:
        if not _may_use_gpus(task):
            return ()
        if task.models and self._node.devices.count:
            self._no_gpu = NO_GPU_FOR_VERSIONS
        mesh = _mesh_of(task)
        return self._node.devices.take(self.assignment.slots, mesh.names if mesh is not None else ())

    async def _prepare(self, folder: Path) -> Task:
        threads = self._node.threads_per_slot * self.assignment.slots
        task = await self._retry_while_unavailable(
            lambda: self._node.repository.task_for(
                self.assignment.attempt, folder=folder / WORK, threads=threads
            )
        )
        if self._node.packages is not None:
            task = await self._node.packages.place(task)
        if task.compile_cache is None:
            cache = self._node.compile_caches / await self._compile_cache(task)
            task = task.model_copy(update={"compile_cache": str(cache)})
        (folder / WORK).mkdir(mode=0o700, exist_ok=True)
        return task

    async def _run(self, task: Task, folder: Path, devices: tuple[str, ...]) -> AttemptEnd:
        node = self._node
        needs = self._sandbox_needs(task)
        key = RunnerKey(self.assignment.root, Environment.of(task), ",".join(devices) or None, needs)
        spool = Spool(folder / "spool.jsonl")
        checkpoints = Path(task.checkpoints or folder / WORK)
        attempt = self.assignment.attempt
        validator = EventValidator(attempt, folder / WORK, checkpoints, node.checkpoints, node.repository)
        quotas = QuotaWatch(attempt, node.repository, node.timing, self.end)
        recorder = EventRecorder(attempt, spool, node.repository, validator, node.timing, quotas)
        recording = asyncio.create_task(recorder.run())
        recording.add_done_callback(self._on_recorded)
        sharing = asyncio.create_task(quotas.follow_events())
        try:
            if node.no_gpu is not None and _may_use_gpus(task):
                recorder.add(Warned(time=time.time(), code="no_gpu", message=node.no_gpu))
            elif self._no_gpu:
                recorder.add(Warned(time=time.time(), code="no_gpu", message=self._no_gpu))
            if (ready := await self._install_packages(task, recorder)) is not None:
                await self._run_on_runner(key, recorder, ready, validator, quotas)
            # Only now: the end of the session reads the last log lines.
            recorder.close()
            await recording
        finally:
            sharing.cancel()
            recording.cancel()
            spool.close()
            if self._packages is not None:
                self._packages.release()
        return self._ending.result()

    async def _install_packages(self, task: Task, recorder: EventRecorder) -> Task | None:
        """Install the packages of the task's code; return the task, or None if the run has ended."""
        if self._node.packages is not None and _runs_code(task):
            found = await self._node.packages.install(task, recorder, self._stop_request, self._ending)
            if isinstance(found, AttemptEnd):
                self.end(found)
            else:
                self._packages, task = found, found.task
                if found.recorded is not None and not self.ended:
                    await self._record_packages(*found.recorded)
        return None if self.ended else task

    async def _record_packages(self, code: OwnCode, packages: Held) -> None:
        """Record the packages of the run before it begins: later runs of the code get the same."""
        attempt = self.assignment.attempt
        await self._before_the_end(
            lambda: self._node.repository.record_packages(attempt, packages.facts.as_set(), code.choice)
        )

    async def _run_on_runner(
        self,
        key: RunnerKey,
        recorder: EventRecorder,
        task: Task,
        validator: EventValidator,
        quotas: QuotaWatch,
    ) -> None:
        runner = await self._take_runner(key, task)
        if runner is None:
            return
        limits = self._node.limits if task.reads_foreign_file() else None
        cap = self._memory_cap(task, limits)
        reusable = False
        folder = self._node.attempts / str(self.assignment.attempt)
        written = (folder / WORK, runner.work_folder)
        models = self._model_processes(task, cap, recorder)
        watching = asyncio.create_task(quotas.watch_files(written, lambda: validator.stored_bytes))
        try:
            write_pid_file(folder, runner.pid)
            limited = task.model_copy(update={"in_memory_bytes": self._in_memory_bytes(cap)})
            limited = await models.open(limited, folder, runner.pid)
            start = await self._hand_over(limited, folder, runner, validator)
            session = RunnerSession(
                runner,
                recorder,
                self._stop_request,
                RivalCurveSender(
                    self.assignment.job, task, self._node.repository, interval=self._node.timing.news
                ),
                quotas.pace,
                self._node.timing,
                memory_cap=cap,
                limits=limits,
                end=self.end,
            )
            reusable = await session.serve(start, self._ending)
        finally:
            watching.cancel()
            await models.close()
            if reusable:
                reusable = await self._withdraw(task, folder, runner)
            pool = self._node.pool
            # Ending a runner withdraws all of its access.
            await (pool.give_back(runner, key) if reusable else pool.discard(runner))

    async def _take_runner(self, key: RunnerKey, task: Task) -> RunnerProcess | None:
        """Return a runner for the task; None if the run ended before one was ready."""
        taking = asyncio.create_task(self._node.pool.take(key, needs_jax=needs_jax(task)))
        first: list[asyncio.Future[Any]] = [taking, self._ending]
        try:
            # Starting a runner may take minutes, but a stop or kill must take effect at once.
            await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
        finally:
            taking.cancel()  # no effect once it is done
        # The cancelled task may have got its runner at the same moment, and then the runner must be ended.
        await asyncio.wait([taking])
        return None if taking.cancelled() else taking.result()

    def _memory_cap(self, task: Task, limits: TaskLimits | None) -> int:
        """Return the largest memory of the runner, in bytes."""
        cap = memory_cap(task, self._node.memory_per_slot * self.assignment.slots)
        return cap if limits is None else min(cap, int(limits.memory_gib * GIB))

    def _in_memory_bytes(self, cap: int) -> int:
        """Return the size up to which the rows of a table are kept in memory by a runner with this cap."""
        return row_memory(cap, self._node.in_memory_bytes)

    async def _hand_over(
        self, task: Task, folder: Path, runner: RunnerProcess, validator: EventValidator
    ) -> Start:
        """Give a runner the files of the task."""
        if runner.sandbox is None:
            start = await asyncio.to_thread(hand_over, task, folder, runner.access)
            if runner.access is not None:
                validator.owner = runner.access.user.uid
            return start
        attempt, sandbox = self.assignment.attempt, runner.sandbox
        self._work = sandbox.folders.work / str(attempt)
        start = await asyncio.to_thread(sandbox.hand_over, task, attempt)
        owner = os.geteuid() if runner.access is None else runner.access.user.uid
        validator.work_in(self._work, owner)
        if (own := sandbox.checkpoints) is not None:
            validator.find_checkpoints(own.place)
        # Before the task begins: a run of which no sandbox is recorded had none.
        await self._before_the_end(lambda: self._record_sandbox(sandbox.process.record))
        return start

    async def _before_the_end(self, call: Callable[[], Awaitable[None]]) -> None:
        """Repeat a call until the database has it, or the run has ended."""
        recording = asyncio.create_task(self._retry_while_unavailable(call))
        first: list[asyncio.Future[Any]] = [recording, self._ending]
        await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
        if recording.done():
            recording.result()
        recording.cancel()

    async def _record_sandbox(self, record: SandboxRecord) -> None:
        await self._node.repository.record_sandbox(self.assignment.attempt, record)

    def _model_processes(self, task: Task, cap: int, recorder: EventRecorder) -> ModelProcesses:
        """Return what executes the models of a task; each may use as much memory as the run."""
        return ModelProcesses(
            self._node.pool,
            self._node.sandbox_limits.of_run(cap),
            task.threads,
            record=lambda record: self._before_the_end(lambda: self._record_sandbox(record)),
            recorder=recorder,
            fail=lambda error: self.end(AttemptEnd.from_error(error)),
        )

    async def _compile_cache(self, task: Task) -> str:
        """Return the name of the folder of a task's compiled programs.

        Programs that code of users has compiled are executed by its own runners alone.
        """
        name = self.assignment.compile_cache
        if task.code is None or (sandboxes := self._node.pool.sandboxes) is None:
            return name
        level = await sandboxes.require(task.code.minimum)
        packages = hashlib.sha256(task.code.python.encode()).hexdigest()[:12]
        return f"{name}-code-{level}-{packages}"

    def _sandbox_needs(self, task: Task) -> SandboxNeeds | None:
        if task.code is None:
            return None
        return SandboxNeeds(
            project=self.assignment.project,
            code=task.code.as_installed(),
            checkpoints=task.checkpoints,
            compile_cache=task.compile_cache or "",
            limits=self._node.sandbox_limits.of_run(self._memory_cap(task, None)),
            gpus=self._gpu_access,
        )

    async def _withdraw(self, task: Task, folder: Path, runner: RunnerProcess) -> bool:
        """Withdraw a runner's access to the files of the task; return whether it has none left."""
        if runner.sandbox is None and runner.access is None:
            return True
        try:
            if runner.sandbox is not None:
                await asyncio.to_thread(runner.sandbox.withdraw, self.assignment.attempt)
            elif runner.access is not None:
                await asyncio.to_thread(withdraw, task, folder, runner.access)
        except OSError as error:
            log.warning("the runner of attempt %s is ended: %s", self.assignment.attempt, error)
            return False
        return True

    def _on_recorded(self, recording: "asyncio.Task[None]") -> None:
        """End the run if its events can no longer be recorded: the attempt is stale, or a disk is full."""
        if not recording.cancelled() and (error := recording.exception()) is not None:
            self.end(AttemptEnd.from_error(error))

    async def _finish(self, ending: AttemptEnd) -> None:
        """Write the end. Without a database this waits; the reaper may end the attempt first."""
        attempt, refusals = self.assignment.attempt, 0
        backoff = Backoff(self._node.timing.retry_first, self._node.timing.retry_limit)
        while ending.owned and refusals < MAX_REFUSALS:
            try:
                await self._node.repository.finish(attempt, ending)
                return
            except StaleFence as error:
                log.warning("%s", error)
                return
            # The owner may change the job's state at the same time. A retry reads the new state.
            except StaleState as error:
                refusals += 1
                log.warning("attempt %s cannot end as %s yet: %s", attempt, ending.outcome, error)
            except DatabaseUnavailable as error:
                log.warning("the end of attempt %s waits for the database: %s", attempt, error)
            # Results come from runners, so one may cause an error that no rule foresees.
            except Exception as error:  # noqa: BLE001  becomes the end of the attempt
                refusals += 1
                ending = AttemptEnd.from_error(error)
            await asyncio.sleep(backoff.next())

    async def _retry_while_unavailable[T](self, call: Callable[[], Awaitable[T]]) -> T:
        backoff = Backoff(self._node.timing.retry_first, self._node.timing.retry_limit)
        while True:
            try:
                return await call()
            except DatabaseUnavailable as error:
                log.warning("attempt %s: %s", self.assignment.attempt, error)
                await asyncio.sleep(backoff.next())


def _runs_code(task: Task) -> bool:
    """Return whether code of users runs for a task, in its own process or beside it."""
    return task.code is not None or bool(task.models)


def _may_use_gpus(task: Task) -> bool:
    """Return whether a task gets GPUs where there are some. A mesh of CPU devices leaves them to others."""
    mesh = _mesh_of(task)
    return (needs_jax(task) or runs_program(task)) and (mesh is None or mesh.kind != "cpu")


def _mesh_of(task: Task) -> MeshSpec | None:
    mesh: MeshSpec | None = getattr(getattr(task, "spec", None), "mesh", None)
    return mesh
