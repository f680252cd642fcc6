"""Copies the newest checkpoints of one attempt into object storage while it runs.

A checkpoint is uploaded after the database has it, and its copy is recorded when it is complete. The runner
never waits: of each training only the newest checkpoint is uploaded, in at most half of the time.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from jobs.errors import NotOwned, StaleFence
from jobs.messages.events import CheckpointCommitted, Log
from jobs.states import Outcome
from workers.engine.killpoint import kill_point
from workers.supervise.attempt_end import AttemptEnd
from workers.supervise.attempt_repository import AttemptRepository, DatabaseUnavailable
from workers.supervise.backoff import Backoff
from workers.supervise.checkpoints import archive
from workers.supervise.checkpoints.channel import CopyChannel
from workers.supervise.timing import Timing

log = logging.getLogger(__name__)

ARCHIVE = "checkpoint.tar"
"""The file in the attempt's folder that is being uploaded."""
type Training = tuple[int | None, int | None]
"""The numbers of a trial and of its execution."""


class CheckpointUploads:
    """One attempt's uploads.

    Args:
        attempt: the attempt.
        channel: moves the copies.
        repository: records them.
        timing: how often.
        folder: the attempt's, which its runner cannot write.
        report: adds a line to the job's log.
    """

    def __init__(
        self,
        attempt: int,
        channel: CopyChannel,
        repository: AttemptRepository,
        timing: Timing,
        folder: Path,
        report: Callable[[Log], None],
    ) -> None:
        self._attempt = attempt
        self._channel = channel
        self._repository = repository
        self._timing = timing
        self._archive = folder / ARCHIVE
        self._report = report
        self._waiting: dict[Training, CheckpointCommitted] = {}
        self._not_before: dict[Training, float] = {}
        self._more = asyncio.Event()
        self._backoff = Backoff(timing.retry_first, timing.retry_limit)
        self._failing = False
        self._uploading = asyncio.Lock()
        self._grace = timing.upload_grace
        self._limit: asyncio.Timeout | None = None

    def add(self, recorded: Sequence[CheckpointCommitted]) -> None:
        """Note checkpoints that the database has. Each replaces the one of its training that still waits."""
        for event in recorded:
            training = (event.trial, event.execution)
            # In the order of the last change: the training that waits longest is next.
            self._waiting.setdefault(training, event)
            self._waiting[training] = event
        self._more.set()

    async def run(self) -> None:
        """Upload until cancelled, or until the attempt is no longer this worker's."""
        with contextlib.suppress(StaleFence):
            while True:
                await self._more.wait()
                training = await self._next_due()
                if training is None:
                    self._more.clear()
                    continue
                seconds = await self._upload(training)
                # Half of the time is left to the artifacts and the inputs of the runs.
                await asyncio.sleep(seconds)

    async def finish(self, ending: AttemptEnd) -> None:
        """Upload what waits, before another worker can be given the work: the end is not written yet.

        A store that does not answer delays it by `Timing.upload_grace` at most.
        """
        if not ending.owned:
            return
        if ending.outcome is Outcome.COMPLETED:
            # A job without trials has its result, and nothing resumes. Trials may be continued.
            self._waiting = {key: event for key, event in self._waiting.items() if key[0] is not None}
        if not self._waiting:
            return
        with contextlib.suppress(StaleFence, TimeoutError):
            async with asyncio.timeout(self._grace) as self._limit:
                while self._waiting:
                    await self._upload(next(iter(self._waiting)))
        self._limit = None
        if self._waiting:
            log.warning(
                "attempt %s ends before %d of its checkpoints were copied to the store",
                self._attempt, len(self._waiting),
            )  # fmt: skip

    def skip(self) -> None:
        """Let `finish` wait no longer, whether it was called already or not."""
        self._grace = 0.0
        if self._limit is not None:
            self._limit.reschedule(asyncio.get_running_loop().time())

    async def _next_due(self) -> Training | None:
        """Wait until a training's upload is due; return None if none waits."""
        if not self._waiting:
            return None
        due = min(self._waiting, key=lambda training: self._not_before.get(training, 0.0))
        delay = self._not_before.get(due, 0.0) - time.monotonic()
        if delay > 0:
            await asyncio.sleep(delay)
        return due if due in self._waiting else None

    async def _upload(self, training: Training) -> float:
        """Upload a training's newest checkpoint. Return how long it took.

        Raises:
            StaleFence: the attempt is no longer this worker's.
        """
        began = time.monotonic()
        # One at a time: the loop may be cancelled during an upload, whose thread still reads the archive.
        async with self._uploading:
            event = self._waiting.pop(training, None)
            if event is None:
                return 0.0
            try:
                await self._copy(event)
            except (StaleFence, asyncio.CancelledError):
                self._waiting.setdefault(training, event)
                raise
            # The runner has replaced it: a newer one waits or follows.
            except archive.Damaged as error:
                log.info("attempt %s: %s", self._attempt, error)
            # Another installation has adopted the store: nothing can be copied, and nothing waits for it.
            except NotOwned as error:
                self._note_failure(error)
            # Each file system of the store has errors of its own.
            except Exception as error:  # noqa: BLE001
                self._waiting.setdefault(training, event)
                self._note_failure(error)
                await asyncio.sleep(self._backoff.next())
            else:
                self._failing = False
                self._backoff.reset()
        seconds = time.monotonic() - began
        self._not_before[training] = time.monotonic() + max(self._timing.upload, seconds)
        return seconds

    async def _copy(self, event: CheckpointCommitted) -> None:
        folder, channel = event.folder, self._channel
        if folder not in await self._repository.copies_needed(self._attempt, [folder]):
            return
        await channel.run(partial(self._send, folder, event.manifest))
        for replaced in await self._repository.record_copy(self._attempt, folder):
            await channel.run(partial(channel.copies.erase, replaced))

    def _send(self, folder: str, manifest: str) -> None:
        """Pack and upload a checkpoint. It may outlive its caller, so it writes a file of its own."""
        file = self._archive.with_name(f"{ARCHIVE}-{time.monotonic_ns()}")
        try:
            archive.pack(self._channel.root, folder, manifest, file)
            kill_point("upload.packed")
            self._channel.copies.put(folder, file)
            kill_point("upload.stored")
        finally:
            file.unlink(missing_ok=True)

    def _note_failure(self, error: Exception) -> None:
        log.warning("attempt %s: a checkpoint was not copied: %s", self._attempt, error)
        if self._failing or isinstance(error, DatabaseUnavailable):
            return
        self._failing = True
        line = (
            "Checkpoints cannot be copied to the artifact store at present, so another worker could resume "
            f"only from an earlier one: {type(error).__name__}: {error}"
        )
        with contextlib.suppress(OSError):
            self._report(Log(time=time.time(), level="warning", source="worker", line=line[:1000]))
