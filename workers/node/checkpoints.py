"""This machine's checkpoints, if other machines have folders of their own.

The scheduler deletes checkpoints that no resume needs from its own folder. It cannot reach those of other
machines, so each node deletes in its own what retention has removed.
"""

import asyncio
import contextlib
import os
import re
import secrets
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from jobs.actions.storage import checkpoint_copies
from jobs.atomic_files import create_once
from jobs.runner_files import remove_folder
from jobs.store import ObjectStore, store
from workers.node.db_threads import DatabaseThread
from workers.supervise.checkpoints.archive import UNFINISHED
from workers.supervise.checkpoints.channel import CopyChannel

PLACE = ".place"
"""The file with the folder's identity."""
CHECKPOINT = re.compile(r"\d{10,}-\d+")
"""The names of complete checkpoints: step and attempt."""
JOB = re.compile(r"job-(\d+)")
OLD_SECONDS = 24 * 3600.0
"""After this time, a checkpoint that the database does not have will not be recorded any more."""


@dataclass(frozen=True)
class NodeCheckpoints:
    """The folder with checkpoints.

    Attributes:
        place: its identity, with which the scheduler finds the workers that have a checkpoint; empty if all
            machines share it.
        channel: moves checkpoints to and from other machines; None if they share the folder.
    """

    root: Path
    place: str = ""
    channel: CopyChannel | None = None

    @classmethod
    def of_store(cls) -> "NodeCheckpoints":
        """Return the folder of the installation's store."""
        root, copies = store().checkpoint_root, store().checkpoint_copies
        if copies is None:
            return cls(root)
        create_once(root / PLACE, secrets.token_hex(8).encode())
        return cls(root, (root / PLACE).read_text(), CopyChannel(copies, root))

    async def sweep(self, database: DatabaseThread) -> None:
        """Delete the checkpoints that retention has removed, left downloads, and those beyond the limit.

        Raises:
            DatabaseUnavailable: it is done the next time.
        """
        if self.channel is None:
            return
        folders = await asyncio.to_thread(lambda: dict(self._written()))
        before = time.time() - OLD_SECONDS
        old = {folder for folder, moment in folders.items() if moment < before}
        removable = await database.call(partial(checkpoint_copies.removable, list(folders), old=old))
        jobs = await asyncio.to_thread(self._jobs)
        existing = await database.call(partial(checkpoint_copies.existing_jobs, list(jobs)))
        left = [folder for key, folder in jobs.items() if key not in existing]
        await asyncio.to_thread(self._remove, removable, left, before)
        kept = [folder for folder in folders if folder not in removable]
        evictable = await database.call(partial(checkpoint_copies.evictable_jobs, kept, existing))
        if isinstance(shared := store(), ObjectStore):
            await asyncio.to_thread(shared.evict_copies, [jobs[key] for key in evictable])

    def _written(self) -> Iterator[tuple[str, float]]:
        """Yield each checkpoint's folder, relative to the root, and when it was written."""
        for parent, folders, _ in os.walk(self.root):
            for name in [name for name in folders if CHECKPOINT.fullmatch(name)]:
                folders.remove(name)
                path = Path(parent, name)
                with contextlib.suppress(OSError):
                    yield str(path.relative_to(self.root)), path.stat().st_mtime

    def _jobs(self) -> dict[int, Path]:
        names = ((JOB.fullmatch(path.name), path) for path in self.root.iterdir())
        return {int(found[1]): path for found, path in names if found is not None}

    def _remove(self, folders: set[str], jobs: list[Path], before: float) -> None:
        for folder in folders:
            # Runners write above it, too: they may have replaced a folder on the way by a link.
            remove_folder(self.root, folder)
        for path in jobs:
            shutil.rmtree(path, ignore_errors=True)
        # A download that was killed; those under way are younger.
        for path in self.root.rglob(f"{UNFINISHED}*"):
            with contextlib.suppress(OSError):
                if path.stat().st_mtime < before:
                    remove_folder(self.root, str(path.relative_to(self.root)))
