"""One approved version: its verified file, its child (restarted when it dies) and its queue."""

import asyncio
import logging
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy.typing as npt
from pydantic import ValidationError

from jobs.contracts.release import ReleasedVersion
from jobs.contracts.signature import Signature
from workers.serving.asgi import Headers, Request
from workers.serving.errors import ClientGone, DeadlineExceeded, ServingError, Unavailable
from workers.serving.metrics import Metrics
from workers.serving.protocols.tfs_views import State, VersionStatus
from workers.serving.releases.artifacts import ArtifactRefused
from workers.serving.settings import Limits
from workers.serving.versions.agreement import SignatureDiffers, agreed
from workers.serving.versions.batcher import Batcher, Outputs, Work
from workers.serving.versions.link import ChildFailed, ChildGone, ChildLink, concatenated
from workers.serving.versions.spare_child import Nursery

logger = logging.getLogger("trainyard.serving")
_WATCH_AFTER = 0.05  # seconds; most answers are out before, and need nobody to watch their client
_LONGEST_PAUSE = 30.0
_HELD_TRIES = 4  # of a restart: a child may be killed while it loads, too


class Files(Protocol):
    """Where verified model files come from."""

    async def obtain(self, digest: str, size: int) -> Path:
        """Return the local path of a file whose digest was verified just now."""


@dataclass(frozen=True)
class Means:
    """What every version of this server shares."""

    files: Files
    nursery: Nursery
    limits: Limits
    metrics: Metrics
    changed: Callable[[], None]


class LoadedVersion:
    """A version from its first load to its end.

    Attributes:
        state: in TensorFlow Serving's words.
        error: why the last try to load failed.
        signature: known from the first successful load on.
        warm: set once it can answer; stays set while a dead child is replaced.
        tried: set once the first load ended, well or not.
    """

    def __init__(self, model: str, approved: ReleasedVersion, means: Means) -> None:
        self.model, self.approved = model, approved
        self.state: State = "START"
        self.error: str | None = None
        self.signature: Signature | None = None
        self.warm = asyncio.Event()
        self.tried = asyncio.Event()
        self.headers: Headers = [
            (b"x-trainyard-model-version", str(approved.number).encode()),
            (b"x-trainyard-digest", approved.digest.encode()),
        ]
        self._means = means
        self._link: ChildLink | None = None
        self._failures = 0
        observe = means.metrics.batch_observer(model)
        self._batcher = Batcher(
            max_batch=means.limits.max_batch,
            queue_rows=means.limits.queue_rows,
            batch_seconds=means.limits.batch_seconds,
            observe=observe,
        )
        self._life = asyncio.create_task(self._live())

    @property
    def status(self) -> VersionStatus:
        """State for the status page and the reports."""
        return VersionStatus(self.approved.number, self.state, self.error)

    @property
    def child_pid(self) -> int | None:
        """Process id of the child that answers; None while there is none."""
        return self._link.pid if self._link else None

    @property
    def waiting_rows(self) -> int:
        """Rows in the queue."""
        return self._batcher.waiting_rows

    def signature_now(self) -> Signature:
        """Return the signature.

        Raises:
            Unavailable: it never was loaded yet.
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
            request: watched for its client's leaving.
            deadline: moment of the monotonic clock.

        Raises:
            ServingError: refused, too late, or failed.
        """
        works = self._batcher.submit(arrays)
        watch = _Watch(self._batcher, works, request, deadline)
        try:
            if len(works) == 1:
                return await works[0].future
            parts = [await work.future for work in works]
        except ServingError as error:
            self._batcher.abandon(works, error)
            raise
        finally:
            watch.end()
        return concatenated(parts)

    async def unload(self, drain_seconds: float) -> None:
        """Answer what waits, then end the child."""
        self.state = "UNLOADING"
        self._means.changed()
        if self.warm.is_set() and not await self._batcher.drained(drain_seconds):
            logger.warning(
                "%s/%d still had requests after %.0f s", self.model, self.approved.number, drain_seconds
            )
        self._batcher.refuse("This version is being unloaded")
        self._life.cancel()
        await asyncio.gather(self._life, return_exceptions=True)
        self.state = "END"
        self._means.changed()

    async def _live(self) -> None:
        while True:
            try:
                await self._serve_once()
            finally:
                await self._end_child()
            if self._failures and not self._holds:
                pause = min(2.0 ** (self._failures - 1), _LONGEST_PAUSE)
                await asyncio.sleep(pause * random.uniform(0.8, 1.2))  # noqa: S311

    @property
    def _holds(self) -> bool:
        """It answered before and may soon again: what waits in the queue is worth keeping."""
        return self.warm.is_set() and self._failures < _HELD_TRIES

    async def _serve_once(self) -> None:
        """Load and serve until the child dies."""
        self._set("LOADING")
        try:
            link = await self._load()
        except (ArtifactRefused, ChildFailed, ChildGone, SignatureDiffers, OSError, ValidationError) as error:
            self._load_failed(error)
            return
        self._failures = 0
        self._batcher.attach(link)
        self._set("AVAILABLE")
        self.warm.set()
        self.tried.set()
        await link.gone
        logger.warning("%s/%d lost its child %d: restarting it", self.model, self.approved.number, link.pid)
        self._means.metrics.child_restarts.add(model_name=self.model)
        self._batcher.detach()

    def _load_failed(self, error: Exception) -> None:
        logger.warning("%s/%d does not load: %s", self.model, self.approved.number, error)
        self._failures += 1
        if not self._holds:
            self._batcher.refuse(f"Version {self.approved.number} of model {self.model} does not load")
            self._set("END", str(error))
            self.tried.set()

    async def _load(self) -> ChildLink:
        path = await self._means.files.obtain(self.approved.digest, self.approved.bytes)
        began = time.monotonic()
        self._link = link = await self._means.nursery.take()
        try:
            found = await link.load(path, self._means.limits.load_seconds)
        finally:
            self._means.nursery.grow()
        self.signature = agreed(self.approved.signature, found)
        self._means.metrics.load_seconds.observe(time.monotonic() - began, model_name=self.model)
        return link

    async def _end_child(self) -> None:
        link, self._link = self._link, None
        if link is not None:
            await asyncio.shield(link.stop())

    def _set(self, state: State, error: str | None = None) -> None:
        if self.state != "UNLOADING":
            self.state, self.error = state, error
            self._means.changed()


class _Watch:
    """Gives a request's works up when its deadline passes or its client leaves.

    Most requests end before the watch begins: they cost one timer, no task.
    """

    def __init__(self, batcher: Batcher, works: list[Work], request: Request, deadline: float) -> None:
        self._batcher, self._works, self._request, self._deadline = batcher, works, request, deadline
        self._task: asyncio.Task[None] | None = None
        after = min(_WATCH_AFTER, max(0.0, deadline - time.monotonic()))
        self._timer = asyncio.get_running_loop().call_later(after, self._begin)

    def end(self) -> None:
        """Stop watching."""
        self._timer.cancel()
        if self._task is not None:
            self._task.cancel()

    def _begin(self) -> None:
        self._task = asyncio.create_task(self._watch())

    async def _watch(self) -> None:
        error: ServingError
        if await self._request.gone(until=self._deadline):
            error = ClientGone("the client left")
        else:
            error = DeadlineExceeded("Deadline exceeded")
        self._batcher.abandon(self._works, error)
