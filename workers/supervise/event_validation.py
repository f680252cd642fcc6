"""What a runner says about files is looked at before it is believed: it may run anybody's code."""

import time
from collections.abc import Sequence
from pathlib import Path

from jobs.contracts.events import ArtifactWritten, CheckpointCommitted, Log, RunnerEvent
from workers.supervise.ledger import Ledger, Stored

LONGEST_NAME = 200


class Vetting:
    """Keeps artifacts from inside the attempt's folder; names checkpoints relative to their root."""

    def __init__(self, folder: Path, checkpoint_root: Path, ledger: Ledger) -> None:
        self._folder = folder.resolve()
        self._checkpoint_root = checkpoint_root.resolve()
        self._ledger = ledger

    async def vet(self, events: Sequence[RunnerEvent]) -> tuple[list[RunnerEvent], dict[str, Stored]]:
        """Return the events to record, and the store's files for those that name one.

        Raises:
            OSError: the store's disk is full.
        """
        kept: dict[str, Stored] = {}
        vetted: list[RunnerEvent] = []
        for event in events:
            match event:
                case ArtifactWritten():
                    vetted.append(await self._artifact(event, kept))
                case CheckpointCommitted():
                    vetted.append(self._checkpoint(event))
                case _:
                    vetted.append(event)
        return vetted, kept

    async def _artifact(self, event: ArtifactWritten, kept: dict[str, Stored]) -> RunnerEvent:
        path = _inside(self._folder, event.path)
        if path is None or not path.is_file():
            return _refused(f"artifact {event.name!r} is no file of this run: {event.path!r}")
        if not 0 < len(event.name) <= LONGEST_NAME:
            return _refused(f"artifact {event.path!r} has no usable name")
        if event.path not in kept:
            kept[event.path] = await self._ledger.keep(path)
        return event

    def _checkpoint(self, event: CheckpointCommitted) -> RunnerEvent:
        path = _inside(self._checkpoint_root, event.folder)  # by now a newer one may have replaced it
        if path is None:
            return _refused(f"checkpoint {event.folder!r} is not in the store")
        return event.model_copy(update={"folder": str(path.relative_to(self._checkpoint_root))})


def _inside(folder: Path, claimed: str) -> Path | None:
    """Return the real path if it lies below `folder`, links followed."""
    try:
        path = (folder / claimed).resolve()
    except (OSError, ValueError, RuntimeError):
        return None  # a loop of links, a zero byte
    return path if folder in path.parents else None


def _refused(line: str) -> Log:
    return Log(time=time.time(), level="warning", source="worker", line=line[:1000])
