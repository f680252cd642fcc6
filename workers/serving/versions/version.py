"""Runs one approved version: its verified file, its child, which is restarted when it dies, and its queue."""

import asyncio
import logging
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy.typing as npt
from pydantic import ValidationError

from jobs.messages.release import ReleasedMesh, ReleasedVersion, SandboxLevel
from jobs.spec.signature import Signature
from workers.features.files import BadFeatures
from workers.model_process.errors import (
    LACKS_MEMORY,
    TOO_LARGE,
    ClientGone,
    DeadlineExceeded,
    ServingError,
    Unavailable,
)
from workers.model_process.signature_check import SignatureMismatch, check_signature
from workers.serving.asgi import Request
from workers.serving.metrics import Metrics
from workers.serving.response import Headers
from workers.serving.settings import Limits
from workers.serving.table import ServedTable, columns_of, read_table, window_of
from workers.serving.traffic import Traffic
from workers.serving.version_status import State, VersionStatus
from workers.serving.versions.artifacts import CODE, MODEL, ArtifactRefused
from workers.serving.versions.batcher import Answer, Batcher, BatchLimits, Outputs, WorkItem
from workers.serving.versions.child_process import ChildExited, ChildFailed, ChildProcess, LoadedModel
from workers.serving.versions.child_starter import ChildStarter
from workers.serving.versions.mesh_load import MeshLoad
from workers.serving.versions.sandboxed_model import SandboxedModel
from workers.serving.versions.sandboxes import Sandboxes
from workers.serving.versions.seen_sizes import SeenSizesFolder

logger = logging.getLogger("trainyard.serving")
# Most requests end earlier, and their clients need no watching.
_WATCH_DELAY_SECONDS = 0.05
_MAX_PAUSE_SECONDS = 30.0
# A child without a sign of life for this long is not ready, or is replaced.
_UNREADY_SECONDS = 1.25
_KILL_SECONDS = 2.5
# Beats begin after the imports, which may take long on a busy machine.
_LOAD_SILENCE_SECONDS = 60.0
# Failed restarts before the queued requests are refused.
_MAX_RESTARTS_WITH_QUEUE = 4


class ArtifactCache(Protocol):
    """Provides verified model files."""

    async def obtain(self, digest: str, size: int, suffix: str = MODEL) -> Path:
        """Return the local path to a file whose digest has just been verified."""


@dataclass(frozen=True)
class VersionContext:
    """The resources that all versions on this server share.

    Attributes:
        artifacts: has the model files.
        child_starter: starts children.
        sandboxes: starts those that need user code.
        limits: the server's.
        metrics: the server's.
        traffic: counts batches for the dashboard.
        seen_sizes: remembers row sizes for each model.
        changed: called after each change of a version's state.
    """

    artifacts: ArtifactCache
    child_starter: ChildStarter
    sandboxes: Sandboxes
    limits: Limits
    metrics: Metrics
    traffic: Traffic
    seen_sizes: SeenSizesFolder
    changed: Callable[[], None]


class LoadedVersion:
    """A version from its first load until it is unloaded.

    Attributes:
        state: as named by TensorFlow Serving.
        error: why the last load failed.
        signature: set by the first successful load.
        table: the pipeline for a version that takes table columns; set with the signature.
        warm: set once it can answer; stays set while a dead child is replaced.
        load_attempted: set once the first load has succeeded or failed.
    """

    def __init__(self, model: str, approved: ReleasedVersion, context: VersionContext) -> None:
        self.model, self.approved = model, approved
        self.state: State = "START"
        self.error: str | None = None
        self.signature: Signature | None = None
        self.table: ServedTable | None = None
        self.warm = asyncio.Event()
        self.load_attempted = asyncio.Event()
        self.headers: Headers = [
            (b"x-trainyard-model-version", str(approved.number).encode()),
            (b"x-trainyard-digest", approved.digest.encode()),
        ]
        self._context = context
        self._child: ChildProcess | None = None
        # Set once a child has found that one device is too small for it.
        self._needs_mesh = False
        self._mesh_load: MeshLoad | None = None
        self._ending: asyncio.Task[None] | None = None
        self._failures = 0
        self._seen = context.seen_sizes.for_model(model)
        self._observe_batch = context.metrics.batch_observer(model)
        limits = context.limits
        self._batcher = Batcher(
            BatchLimits(
                limits.max_batch,
                limits.queue_rows,
                limits.batch_seconds,
                limits.compile_seconds,
                limits.answer_bytes,
            ),
            observe=self._record_batch,
            answered=self._record_sizes,
        )
        self._task = asyncio.create_task(self._run())

    @property
    def status(self) -> VersionStatus:
        return VersionStatus(self.approved.number, self.state, self.error)

    @property
    def child_pid(self) -> int | None:
        """The child's pid; None while there is none."""
        return self._child.pid if self._child else None

    @property
    def sandbox(self) -> SandboxLevel | None:
        """The level of its child's sandbox; None without one."""
        return self._child.level if self._child is not None else None

    @property
    def child_pids(self) -> list[int]:
        """The child's processes."""
        return self._child.pids() if self._child is not None else []

    @property
    def waiting_rows(self) -> int:
        return self._batcher.waiting_rows

    def signature_now(self) -> Signature:
        """Return the signature.

        Raises:
            Unavailable: the version has not been loaded yet.
        """
        if self.signature is None:
            raise Unavailable(
                f"Version {self.approved.number} of model {self.model} is loading", retry_after=1
            )
        return self.signature

    async def predict(self, arrays: list[npt.NDArray[Any]], request: Request, deadline: float) -> Outputs:
        """Return the outputs for these inputs, in the signature's order.

        Args:
            arrays: inputs [rows, …] in the signature's order.
            request: watched in case its client disconnects.
            deadline: monotonic time.

        Raises:
            ServingError: the request was refused, timed out or failed.
        """
        outputs: asyncio.Future[Outputs] = asyncio.get_running_loop().create_future()
        item = self._batcher.submit(arrays, outputs)
        watch = _RequestWatch(self._batcher, item, request, deadline)
        try:
            return await outputs
        finally:
            watch.end()

    def submit(self, arrays: list[npt.NDArray[Any]], answer: Answer) -> WorkItem:
        """Queue a request whose outcome `answer` receives.

        Args:
            arrays: inputs [rows, …] in the signature's order.
            answer: it must call `cancel` when its time has passed or its client has left.

        Raises:
            ServingError: the request was refused.
        """
        return self._batcher.submit(arrays, answer)

    def cancel(self, item: WorkItem, error: ServingError) -> None:
        """Fail a request that `submit` queued."""
        self._batcher.cancel(item, error)

    async def unload(self, drain_seconds: float) -> None:
        """Answer the queued requests, then end the child."""
        self.state = "UNLOADING"
        self._context.changed()
        if self.warm.is_set() and not await self._batcher.drained(drain_seconds):
            logger.warning(
                "%s/%d still had requests after %.0f s", self.model, self.approved.number, drain_seconds
            )
        # Only requests that exceeded the time are still queued.
        self._batcher.refuse("This version is being unloaded")
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        await self._end_child()
        self.state = "END"
        self._context.changed()

    async def _run(self) -> None:
        while True:
            try:
                await self._serve_once()
            finally:
                await self._end_child()
            if self._failures and not self._keeps_queue:
                pause = min(2.0 ** (self._failures - 1), _MAX_PAUSE_SECONDS)
                await asyncio.sleep(pause * random.uniform(0.8, 1.2))  # noqa: S311

    async def _end_child(self) -> None:
        """Return when there is no child any more.

        `unload` may cancel a task that waits for this; the child still ends, and `unload` waits for it.
        """
        if self._ending is None or self._ending.done():
            self._ending = asyncio.create_task(self._stop_child())
        await asyncio.shield(self._ending)

    async def _stop_child(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            await child.stop()
        load, self._mesh_load = self._mesh_load, None
        if load is not None:
            await load.close()

    @property
    def _keeps_queue(self) -> bool:
        """Whether queued requests are kept during a restart: it has answered before, and may again soon."""
        return self.warm.is_set() and self._failures < _MAX_RESTARTS_WITH_QUEUE

    async def _serve_once(self) -> None:
        """Load and serve until the child dies."""
        self._set("LOADING")
        try:
            child = await self._load()
        except (
            ArtifactRefused,
            ChildFailed,
            ChildExited,
            SignatureMismatch,
            BadFeatures,
            OSError,
            ValidationError,
        ) as error:
            self._load_failed(str(error))
            return
        # Nothing but this loop starts another child.
        except Exception:
            logger.exception("%s/%d could not be loaded", self.model, self.approved.number)
            self._load_failed("internal error; the log of the prediction server has the cause")
            return
        self._failures = 0
        self._set("AVAILABLE")
        self.warm.set()
        self.load_attempted.set()
        await self._watch(child)
        self._set("LOADING")
        cause = f" ({child.cause})" if child.cause else ""
        logger.warning(
            "%s/%d: child %d ended%s; restarting it", self.model, self.approved.number, child.pid, cause
        )
        self._context.metrics.child_restarts.add(model_name=self.model)
        self._batcher.detach()

    async def _watch(self, child: ChildProcess) -> None:
        """Return when the child has ended. One that sends nothing is not ready, and is killed later."""
        while not child.ended.done():
            await child.silence(_UNREADY_SECONDS)
            if child.ended.done():
                return
            logger.warning("%s/%d: child %d does not respond", self.model, self.approved.number, child.pid)
            self._set("LOADING")
            if not await child.sign_of_life(_KILL_SECONDS - _UNREADY_SECONDS):
                # Its queued requests go to the next child.
                child.kill()
                await child.ended
                return
            self._set("AVAILABLE")

    def _load_failed(self, error: str) -> None:
        logger.warning("%s/%d could not be loaded: %s", self.model, self.approved.number, error)
        self._failures += 1
        if not self._keeps_queue:
            self._batcher.refuse(f"Version {self.approved.number} of model {self.model} could not be loaded")
            self._set("END", error)
            self.load_attempted.set()

    async def _load(self) -> ChildProcess:
        path = await self._context.artifacts.obtain(self.approved.digest, self.approved.bytes)
        self.table = await asyncio.to_thread(read_table, path)
        began = time.monotonic()
        child, loaded = await self._start_loaded(path)
        signature = check_signature(self.approved.signature, loaded.signature)
        self.signature = signature.model_copy(
            update={"columns": columns_of(self.table), "window": window_of(self.table)}
        )
        self._context.metrics.load_seconds.observe(time.monotonic() - began, model_name=self.model)
        self._batcher.attach(child, loaded.slowest)
        return child

    async def _start_loaded(self, path: Path) -> tuple[ChildProcess, LoadedModel]:
        """Start a child that loads the file on one device, or on the version's mesh if it needs that."""
        mesh = self.approved.mesh
        if mesh is None or not self._needs_mesh:
            self._child, file = await self._start(path)
            try:
                return self._child, await self._load_watched(self._child, file)
            except ChildFailed as refused:
                if mesh is None or refused.kind not in (TOO_LARGE, LACKS_MEMORY):
                    raise
                return await self._start_on_mesh_instead(path, mesh, refused)
        return await self._start_on_mesh(path, mesh)

    async def _start_on_mesh_instead(
        self, path: Path, mesh: ReleasedMesh, refused: ChildFailed
    ) -> tuple[ChildProcess, LoadedModel]:
        """Load on the mesh a version that one device has refused.

        If only too little of its memory was free, the next load begins with one device again.
        """
        name, shape = f"{self.model}/{self.approved.number}", " × ".join(map(str, mesh.shape))
        logger.info("%s is loaded on its mesh of %s devices; on one, %s", name, shape, refused)
        # CUDA is open with one GPU, so another process opens those of the mesh.
        await self._end_child()
        self._needs_mesh = refused.kind == TOO_LARGE
        try:
            return await self._start_on_mesh(path, mesh)
        except ChildFailed as error:
            if self._needs_mesh:
                raise
            raise ChildFailed(f"on one device, {refused}; on its mesh, {error}", error.kind) from error

    async def _start_on_mesh(self, path: Path, mesh: ReleasedMesh) -> tuple[ChildProcess, LoadedModel]:
        self._mesh_load = MeshLoad(mesh, path.parent)
        self._child = await self._context.child_starter.start()
        return self._child, await self._load_watched(self._child, path, self._mesh_load)

    async def _start(self, path: Path) -> tuple[ChildProcess, Path]:
        """Start a child, in a sandbox if the version needs code; return it and the file that it loads."""
        code = self.approved.code
        if code is None:
            return await self._context.child_starter.start(), path
        artifacts = self._context.artifacts
        files = [(file.path, await artifacts.obtain(file.digest, file.bytes, CODE)) for file in code.files]
        name = f"{self.model}/{self.approved.number}"
        return await self._context.sandboxes.start(SandboxedModel(name, path, code, files))

    async def _load_watched(
        self, child: ChildProcess, path: Path, mesh: MeshLoad | None = None
    ) -> LoadedModel:
        """Load the model; a child that stops while it loads is killed, which fails the load."""

        async def kill_if_silent() -> None:
            await child.silence(_LOAD_SILENCE_SECONDS)
            # Its status would be that of the signal.
            if not child.ended.done():
                child.kill()

        watch = asyncio.create_task(kill_if_silent())
        try:
            seconds, sizes = self._context.limits.load_seconds, self._seen.recent()
            return await child.load(path, seconds, sizes, None if mesh is None else mesh.header())
        finally:
            watch.cancel()

    def _record_batch(self, rows: int, queued: float, ran: float) -> None:
        self._observe_batch(rows, queued, ran)
        tally = self._context.traffic.tally(self.model, self.approved.number)
        tally.count_batch(rows, self._batcher.waiting_rows)

    def _record_sizes(self, sizes: Sequence[tuple[int, ...]]) -> None:
        if self.signature is not None and any(None in spec.shape for spec in self.signature.inputs):
            self._seen.record(sizes)

    def _set(self, state: State, error: str | None = None) -> None:
        # A child that dies during the last requests must not make the version appear to load again.
        if self.state != "UNLOADING":
            self.state, self.error = state, error
            self._context.changed()


class _RequestWatch:
    """Cancels a request when its deadline passes or its client disconnects.

    Most requests end before the watch begins, so they cost a timer but no task.
    """

    def __init__(self, batcher: Batcher, item: WorkItem, request: Request, deadline: float) -> None:
        self._batcher, self._item, self._request, self._deadline = batcher, item, request, deadline
        self._task: asyncio.Task[None] | None = None
        after = min(_WATCH_DELAY_SECONDS, max(0.0, deadline - time.monotonic()))
        self._timer = asyncio.get_running_loop().call_later(after, self._begin)

    def end(self) -> None:
        self._timer.cancel()
        if self._task is not None:
            self._task.cancel()

    def _begin(self) -> None:
        self._task = asyncio.create_task(self._watch())

    async def _watch(self) -> None:
        error: ServingError
        if await self._request.disconnected(until=self._deadline):
            error = ClientGone("the client disconnected")
        else:
            error = DeadlineExceeded("Deadline exceeded")
        self._batcher.cancel(self._item, error)
