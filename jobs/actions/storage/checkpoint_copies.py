"""Decides which checkpoints are copied into object storage, and deletes copies that no resume needs.

A worker uploads a copy before its row names it, and the row of a checkpoint that is kept forgets its copy
before that is deleted. So a process that is killed in between leaves at most a copy without a row, which the
collection of files deletes.
"""

from collections.abc import Collection, Iterable, Iterator
from itertools import batched
from threading import Event

from django.db import transaction
from django.db.models import QuerySet

from jobs import clock
from jobs.actions.storage import retention
from jobs.errors import StaleFence
from jobs.models import Attempt, Checkpoint, Job
from jobs.states import FINAL, AttemptState
from jobs.store import CheckpointCopies, store

BATCH = 500


def needed(attempt_id: int, folders: Collection[str]) -> set[str]:
    """Return which of an attempt's checkpoints a resume may need, and have no copy yet.

    Args:
        attempt_id: the attempt.
        folders: the checkpoints' folders.

    Raises:
        StaleFence: the attempt is no longer running.
    """
    job = _job_of_running(attempt_id)
    rows = job.checkpoints.kept().filter(folder__in=folders, stored=None).select_related("trial")
    best = retention.best_trials(job)
    return {row.folder for row in rows if retention.number_to_keep(job, row, best)}


def record(attempt_id: int, folder: str) -> list[str]:
    """Note that a checkpoint's copy is complete.

    Args:
        attempt_id: the attempt, which has written the checkpoint.
        folder: the checkpoint's folder.

    Returns:
        The folders whose copies are not needed any more; the caller deletes them.

    Raises:
        StaleFence: the attempt is no longer running.
    """
    with transaction.atomic():
        job = _job_of_running(attempt_id, lock=True)
        row = job.checkpoints.filter(folder=folder).first()
        # Retention may have removed it during the upload.
        if row is None or not job.checkpoints.kept().filter(pk=row.pk).update(stored=clock.now()):
            return [folder]
        copies = job.checkpoints.filter(trial=row.trial_id, execution=row.execution, stored__isnull=False)
        newest = list(copies.order_by("-pk").values_list("pk", "folder", "removed"))
        replaced = {
            pk: name
            for rank, (pk, name, removed) in enumerate(newest)
            if rank >= retention.KEEP_NEWEST or removed is not None
        }
        Checkpoint.objects.filter(pk__in=replaced).update(stored=None)
    return [*replaced.values()]


def _job_of_running(attempt_id: int, *, lock: bool = False) -> Job:
    rows = Attempt.objects.select_for_update(of=("self",), no_key=True) if lock else Attempt.objects
    running = rows.filter(pk=attempt_id, state=AttemptState.RUNNING)
    attempt = running.select_related("job__revision").first()
    if attempt is None:
        raise StaleFence(f"attempt {attempt_id} is no longer running")
    return attempt.job


def erase_removed(*, stop: Event) -> int:
    """Delete the copies of checkpoints that retention has removed. Return how many.

    Object storage may answer slowly, so the scheduler calls it in a thread.
    """
    copies, erased = store().checkpoint_copies, 0
    if copies is None:
        return 0
    removed = Checkpoint.objects.filter(removed__isnull=False, stored__isnull=False)
    for pk, folder in list(removed.order_by("pk").values_list("pk", "folder")):
        if stop.is_set():
            break
        # The file first: nothing resumes from a removed checkpoint, and after a crash it is deleted again.
        copies.erase(folder)
        erased += removed.filter(pk=pk).update(stored=None)
    return erased


def without_row(copies: CheckpointCopies, *, before: float) -> Iterator[tuple[str, int]]:
    """Yield the folder and the size of each copy that was written before this time and that no row names."""
    old = (entry for entry in copies.entries() if entry.time < before)
    for entries in batched(old, BATCH):
        named = _folders_in(Checkpoint.objects.filter(stored__isnull=False), [e.folder for e in entries])
        yield from ((entry.folder, entry.bytes) for entry in entries if entry.folder not in named)


def removable(folders: Iterable[str], *, old: Collection[str]) -> set[str]:
    """Return which checkpoints a machine can delete from its own folder.

    Args:
        folders: those that it has.
        old: those that were written long ago: without a row, they will not get one any more.
    """
    found: set[str] = set()
    for batch in batched(folders, BATCH):
        kept = _folders_in(Checkpoint.objects.kept(), batch)
        known = _folders_in(Checkpoint.objects.all(), batch)
        found |= {name for name in batch if name not in kept and (name in known or name in old)}
    return found


def _folders_in(rows: QuerySet[Checkpoint], folders: Collection[str]) -> set[str]:
    return set(rows.filter(folder__in=folders).values_list("folder", flat=True))


def evictable_jobs(folders: Iterable[str], keys: Collection[int]) -> set[int]:
    """Return which jobs' checkpoints a machine can delete if its disk has to hold less.

    They are those of jobs that have ended. A checkpoint from which a retry resumes, and that has no copy in
    object storage, may exist on this machine only: its job's checkpoints stay.

    Args:
        folders: the checkpoints that the machine has.
        keys: the jobs to which they belong.
    """
    ended: set[int] = set()
    for jobs in batched(keys, BATCH):
        ended |= set(Job.everything.filter(pk__in=jobs, state__in=FINAL).values_list("pk", flat=True))
    for batch in batched(folders, BATCH):
        uncopied = Checkpoint.objects.kept().filter(folder__in=batch, stored=None)
        ended -= set(uncopied.values_list("job", flat=True))
    return ended


def existing_jobs(keys: Collection[int]) -> set[int]:
    """Return which of these jobs have a row, also a deleted one that can be restored."""
    return set(Job.everything.filter(pk__in=keys).values_list("pk", flat=True))
