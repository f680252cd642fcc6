"""Brings the checkpoints from which a task may resume onto this machine, or finds out why there is none.

Of each training, the newest complete checkpoint is wanted. One that is here is used; else its copy is
downloaded. A copy that is missing or damaged leads to the one before it. A store that does not answer does
not: the attempt waits and ends as lost, since a start from the first epoch would be worse.
"""

import asyncio
import contextlib
import logging
import os
import tempfile
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path, PurePath

from jobs.errors import NotFound, StoreUnavailable
from jobs.messages.task import CheckpointFolder, Task
from jobs.messages.training import TrainTask, TrialTask
from workers.supervise.attempt_end import DISK_FULL
from workers.supervise.backoff import Backoff
from workers.supervise.checkpoints import archive
from workers.supervise.checkpoints.channel import CopyChannel

log = logging.getLogger(__name__)

TRIES = 5
"""How often a download is tried from a store that does not answer."""
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 20.0


type Training = tuple[int, int]
"""The number of a trial and of its execution; zeros for a job without trials."""


async def fetch_checkpoints(task: Task, channel: CopyChannel) -> dict[Training, str]:
    """Bring each training's newest complete checkpoint here. Return why others cannot resume.

    Raises:
        StoreUnavailable: the store does not answer.
        OSError: the disk is full.
    """
    reasons = {}
    for training, candidates in _trainings(task):
        if candidates and (reason := await _fetch_newest(candidates, channel)) is not None:
            reasons[training] = reason
    return reasons


def _trainings(task: Task) -> Iterator[tuple[Training, Sequence[CheckpointFolder]]]:
    if isinstance(task, TrainTask):
        yield (0, 0), task.resume
    elif isinstance(task, TrialTask):
        for trial in task.trials:
            for plan in trial.executions:
                yield (trial.number, plan.execution), plan.checkpoints


async def _fetch_newest(candidates: Sequence[CheckpointFolder], channel: CopyChannel) -> str | None:
    """Bring the first complete checkpoint here. Return why there is none."""
    reasons = []
    for candidate in candidates:
        reason = await _fetch_one(candidate, channel)
        if reason is None:
            return None
        log.warning("%s", reason)
        reasons.append(reason)
    return "; ".join(reasons)


async def _fetch_one(candidate: CheckpointFolder, channel: CopyChannel) -> str | None:
    """Make sure that a checkpoint is on this machine. Return why it cannot be."""
    folder = os.path.relpath(candidate.folder, channel.root)
    # Not in a thread of the channel, which may have no answer from the store for minutes.
    if await asyncio.to_thread(_is_here, channel, folder, candidate.manifest):
        return None
    name = f"the checkpoint of epoch {candidate.epoch}"
    if not candidate.copied:
        place = f"worker {candidate.worker}" if candidate.worker else "another worker"
        return f"{name} is only on {place}, which had not copied it to the artifact store before it stopped"
    backoff, tries = Backoff(FIRST_PAUSE, LONGEST_PAUSE), 0
    while True:
        try:
            await channel.run(partial(_download, channel, folder, candidate.manifest))
            return None
        except NotFound:
            return f"{name} is missing in the artifact store"
        except archive.Damaged as error:
            return f"the copy of {name} in the artifact store cannot be used: {error}"
        # Each file system of the store has errors of its own.
        except Exception as error:
            if isinstance(error, OSError) and error.errno in DISK_FULL:
                raise
            tries += 1
            if tries >= TRIES:
                raise StoreUnavailable(
                    f"the artifact store does not answer, so {name} could not be downloaded: {error}"
                ) from error
            log.warning("%s could not be downloaded: %s", name, error)
            await asyncio.sleep(backoff.next())


def _is_here(channel: CopyChannel, folder: str, manifest: str) -> bool:
    # Before the look: the folders of ended jobs that were used in the last hour are not evicted.
    with contextlib.suppress(OSError):
        os.utime(channel.root / PurePath(folder).parts[0])
    return archive.is_intact(channel.root, folder, manifest)


def _download(channel: CopyChannel, folder: str, manifest: str) -> None:
    with tempfile.TemporaryDirectory(dir=channel.root, prefix=archive.UNFINISHED) as place:
        file = Path(place) / "archive"
        channel.copies.get(folder, file)
        archive.unpack(file, channel.root, folder, manifest)
