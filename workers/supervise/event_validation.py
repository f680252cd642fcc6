"""Validates the files that a runner's events name: a runner may execute untrusted code."""

import time
from collections.abc import Sequence
from pathlib import Path

from jobs.contracts.events import ArtifactWritten, CheckpointCommitted, Log, RunnerEvent
from workers.supervise.attempt_repository import AttemptRepository, StoredArtifact

LONGEST_NAME = 200


class EventValidator:
    """Stores artifacts of the attempt's folder, and makes checkpoint paths relative to their root."""

    def __init__(self, folder: Path, checkpoint_root: Path, repository: AttemptRepository) -> None:
        self._folder = folder.resolve()
        self._checkpoint_root = checkpoint_root.resolve()
        self._repository = repository

    async def validate(
        self, events: Sequence[RunnerEvent]
    ) -> tuple[list[RunnerEvent], dict[str, StoredArtifact]]:
        """Return the events to record, and the stored file of each artifact path.

        Raises:
            OSError: the store's disk is full.
        """
        stored: dict[str, StoredArtifact] = {}
        valid: list[RunnerEvent] = []
        for event in events:
            match event:
                case ArtifactWritten():
                    valid.append(await self._artifact(event, stored))
                case CheckpointCommitted():
                    valid.append(self._checkpoint(event))
                case _:
                    valid.append(event)
        return valid, stored

    async def _artifact(self, event: ArtifactWritten, stored: dict[str, StoredArtifact]) -> RunnerEvent:
        path = _inside(self._folder, event.path)
        if path is None or not path.is_file():
            return _warning(f"artifact {event.name!r} is not a file of this run: {event.path!r}")
        if not 0 < len(event.name) <= LONGEST_NAME:
            return _warning(f"artifact {event.path!r} has no usable name")
        # One file may be reported under several roles; it is copied once.
        if event.path not in stored:
            stored[event.path] = await self._repository.store_file(path)
        return event

    def _checkpoint(self, event: CheckpointCommitted) -> RunnerEvent:
        # Existence is not checked: a newer checkpoint may have replaced it.
        path = _inside(self._checkpoint_root, event.folder)
        if path is None:
            return _warning(f"checkpoint {event.folder!r} is not in the checkpoint store")
        return event.model_copy(update={"folder": str(path.relative_to(self._checkpoint_root))})


def _inside(folder: Path, claimed: str) -> Path | None:
    """Return the real path, with links resolved, if it lies below `folder`."""
    try:
        path = (folder / claimed).resolve()
    except (OSError, ValueError, RuntimeError):  # a loop of links, or a null byte
        return None
    return path if folder in path.parents else None


def _warning(line: str) -> Log:
    return Log(time=time.time(), level="warning", source="worker", line=line[:1000])
