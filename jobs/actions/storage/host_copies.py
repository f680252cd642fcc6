"""Removes old copies of files, and checkpoints, from a machine whose artifacts are in object storage.

Each machine has copies of files, and the checkpoints of the attempts that ran on it. The collection and the
retention run on the scheduler's machine only.
"""

from collections.abc import Collection
from itertools import batched
from pathlib import Path
from typing import NamedTuple

from jobs.models import Checkpoint, Job
from jobs.runner_files import remove_folder
from jobs.states import FINAL
from jobs.store import ObjectStore, store

JOB_FOLDER = "job-"
BATCH = 500


class HostFolders(NamedTuple):
    """The checkpoints on this machine, by their state in the database.

    Attributes:
        finished: the folders of jobs that have ended, or that no longer exist.
        removed: checkpoints that retention has removed, relative to the root of all checkpoints.
    """

    finished: tuple[Path, ...] = ()
    removed: tuple[str, ...] = ()


def host_folders() -> HostFolders:
    """Compare this machine's checkpoints with the database. It only reads."""
    if not isinstance(store(), ObjectStore):
        return HostFolders()
    places = {
        int(folder.name.removeprefix(JOB_FOLDER)): folder
        for folder in store().checkpoint_root.glob(f"{JOB_FOLDER}*")
        if folder.name.removeprefix(JOB_FOLDER).isdecimal()
    }
    finished: list[Path] = []
    removed: list[str] = []
    for keys in batched(places, BATCH):
        rows = Job.everything.filter(pk__in=keys).exclude(state__in=FINAL)
        open_jobs = set(rows.values_list("pk", flat=True))
        finished += [places[key] for key in keys if key not in open_jobs]
        removed += _removed_checkpoints(keys)
    return HostFolders(tuple(finished), tuple(removed))


def _removed_checkpoints(jobs: Collection[int]) -> list[str]:
    rows = Checkpoint.objects.filter(job__in=jobs, removed__isnull=False)
    root = store().checkpoint_root
    return [folder for folder in rows.values_list("folder", flat=True) if (root / folder).exists()]


def tidy(folders: HostFolders) -> int:
    """Delete removed checkpoints, and the least recently used files beyond the limit. Count the latter."""
    shared = store()
    if not isinstance(shared, ObjectStore):
        return 0
    for folder in folders.removed:
        # Runners write above it, too: they may have replaced a folder on the way by a link.
        remove_folder(shared.checkpoint_root, folder)
    return shared.evict_copies(folders.finished)
