"""Validates the files that a runner's events name: a runner may execute untrusted code."""

import asyncio
import os
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePath

from jobs.messages.events import ArtifactWritten, CheckpointCommitted, Log, RunnerEvent
from jobs.runner_files import open_regular
from workers.supervise.attempt_repository import AttemptRepository, StoredArtifact
from workers.supervise.limits.folder_use import size_of

MAX_NAME_CHARACTERS = 200
MAX_FILES = 10_000
"""Maximum number of files of a checkpoint that are measured; those of Trainyard have fewer than ten."""


class EventValidator:
    """Stores artifacts from the attempt's folder, and makes checkpoint paths relative to their root.

    Args:
        attempt: the attempt.
        folder: the attempt's folder, in which its runner writes.
        checkpoints: the folder with the task's checkpoints.
        checkpoint_root: the folder with all checkpoints.
        repository: stores the artifacts.
    """

    def __init__(
        self,
        attempt: int,
        folder: Path,
        checkpoints: Path,
        checkpoint_root: Path,
        repository: AttemptRepository,
    ) -> None:
        self._attempt = attempt
        self._folder = folder.resolve()
        # The folder with the task's checkpoints: its path in events, and its real path.
        self._path_in_events = self._checkpoints = checkpoints.resolve()
        self._checkpoint_root = checkpoint_root.resolve()
        self._repository = repository
        self.owner = os.geteuid()
        """The user id of the runner."""
        self.stored_bytes = 0
        """Bytes of the files that were copied to the store. They are in the attempt's folder, too."""

    def work_in(self, folder: Path, owner: int) -> None:
        """Set the folder in which the runner writes, and its user. Call it before there are events."""
        self._folder = folder.resolve()
        self.owner = owner

    def find_checkpoints(self, place: Path) -> None:
        """Set the folder in which the runner writes checkpoints. Call it before there are events."""
        self._path_in_events, self._checkpoints = place, place.resolve()

    async def validate(
        self, events: Sequence[RunnerEvent]
    ) -> tuple[list[RunnerEvent], dict[str, StoredArtifact]]:
        """Return the events to record, and the stored file for each artifact path.

        Raises:
            OSError: the store's disk is full.
            QuotaReached: a file does not fit into its project's disk quota.
        """
        stored: dict[str, StoredArtifact] = {}
        valid: list[RunnerEvent] = []
        checkpoints = await self._checkpoints_of(events)
        for event in events:
            match event:
                case ArtifactWritten():
                    valid.append(await self._artifact(event, stored))
                case CheckpointCommitted():
                    valid.append(next(checkpoints))
                case _:
                    valid.append(event)
        return valid, stored

    async def _artifact(self, event: ArtifactWritten, stored: dict[str, StoredArtifact]) -> RunnerEvent:
        if not 0 < len(event.name) <= MAX_NAME_CHARACTERS:
            return _warning(f"artifact {event.path!r} has no usable name")
        # One file may be reported under several roles; it is copied once.
        if event.path not in stored:
            try:
                descriptor = open_regular(self._folder, event.path, owner=self.owner)
            except (OSError, ValueError):
                return _warning(f"artifact {event.name!r} is not a file of this run: {event.path!r}")
            stored[event.path] = await self._store(descriptor)
            self.stored_bytes += stored[event.path].bytes
        return event

    async def _store(self, descriptor: int) -> StoredArtifact:
        """Store an open file, and close it."""
        # The name leads to this file, and not to another one that may have its path by now.
        path = Path("/proc/self/fd" if sys.platform == "linux" else "/dev/fd") / str(descriptor)
        storing = asyncio.ensure_future(self._repository.store_file(self._attempt, path))
        # Not before: if this call is cancelled, a thread may still read the file.
        storing.add_done_callback(lambda _: os.close(descriptor))
        return await asyncio.shield(storing)

    async def _checkpoints_of(self, events: Sequence[RunnerEvent]) -> Iterator[RunnerEvent]:
        """Return the events to record for the checkpoints among these events, in order."""
        committed = [event for event in events if isinstance(event, CheckpointCommitted)]
        if not committed:
            return iter(())
        # Together: a search of short trials commits many, and a thread takes longer than measuring a folder.
        return iter(await asyncio.to_thread(lambda: [self._checkpoint(event) for event in committed]))

    def _checkpoint(self, event: CheckpointCommitted) -> RunnerEvent:
        # Existence is not checked: a newer checkpoint may have replaced it.
        claimed = PurePath(event.folder)
        if claimed.is_relative_to(self._path_in_events):
            claimed = claimed.relative_to(self._path_in_events)
        path = _inside(self._checkpoints, str(claimed))
        if path is None or self._checkpoint_root not in path.parents:
            return _warning(f"checkpoint {event.folder!r} is not in the folder of this job's checkpoints")
        # The runner may claim any size, and the disk quota counts this one.
        size = size_of(path, most_files=MAX_FILES)
        folder = str(path.relative_to(self._checkpoint_root))
        return event.model_copy(update={"folder": folder, "bytes": event.bytes if size is None else size})


def _inside(folder: Path, claimed: str) -> Path | None:
    """Return the real path, with links resolved, if it lies below `folder`."""
    try:
        path = (folder / claimed).resolve()
    except (OSError, ValueError, RuntimeError):  # a loop of links, or a null byte
        return None
    return path if folder in path.parents else None


def _warning(line: str) -> Log:
    return Log(time=time.time(), level="warning", source="worker", line=line[:1000])
