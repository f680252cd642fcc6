"""Deletes the files that nothing refers to.

A run holds the lease `collection` and renews it in each deletion's transaction, so that a run that was
suspended deletes nothing after another has begun. It may be killed anywhere: a row goes before its file, a
file goes to the trash before it is erased, and the next run continues.

Files that are on their way into the database have no reference yet. They are kept for `GRACE` after they were
last stored: by the time in their row, by the file's time, and by another `GRACE` in the trash, from which the
store takes a file back when it is read.
"""

import logging
import os
import shutil
import socket
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import timedelta
from itertools import batched
from pathlib import Path
from threading import Event, Thread

from django.db import DatabaseError, InterfaceError, connections, transaction

from jobs import clock
from jobs.actions import leases, totals
from jobs.actions.audit import audit
from jobs.actions.storage import checkpoint_copies, purge
from jobs.errors import NotOwned, StaleFence
from jobs.logged_errors import log_errors
from jobs.models import Artifact, Job
from jobs.queries.storage import ownership, references
from jobs.store import StoredFile, StoreEntry, store

log = logging.getLogger(__name__)

LEASE = "collection"
LEASE_SECONDS = 600.0
"""Longer than the steps that delete nothing: listing a large store, and reading the JSON columns."""
PURGE_SECONDS = 10.0
GRACE = timedelta(days=1)
BATCH = 500
CLOCKS = 60.0
"""The store's and this machine's clocks may differ by so many seconds."""
JOB_FOLDER = "job-"


@dataclass
class Collected:
    """The files and rows that a run deleted, or that a dry run would delete."""

    deletions: int = 0
    """Deletions that were completed because their time has passed. A dry run does not count their files."""
    files: int = 0
    bytes: int = 0
    waiting: int = 0
    """Files without a reference that are still kept, because they were stored less than `GRACE` ago."""
    waiting_bytes: int = 0
    checkpoints: int = 0
    """Folders whose jobs no longer exist, and copies in object storage that no row names."""
    checkpoint_bytes: int = 0
    erased: int = 0
    """Files that were in the trash for `GRACE`."""
    erased_bytes: int = 0


def collect(*, dry_run: bool = False, stop: Event | None = None) -> Collected | None:
    """Purge expired deletions, and delete files that nothing refers to.

    Args:
        dry_run: only count.
        stop: ends the run early when it is set.

    Returns:
        The counts; None if another process is collecting.

    Raises:
        NotOwned: the store belongs to another installation.
    """
    if dry_run:
        return _Run("", stop or Event(), dry=True).all()
    if (sentence := ownership.problem()) is not None:
        raise NotOwned(sentence)
    holder = f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:8]}"
    if not leases.hold(LEASE, holder, seconds=LEASE_SECONDS):
        return None
    try:
        return _Run(holder, stop or Event(), dry=False).all()
    except StaleFence as error:
        log.warning("%s", error)
        return None
    except Exception:
        with suppress(DatabaseError, InterfaceError), transaction.atomic():
            totals.add(totals.COLLECTIONS, {"failed": 1})
        raise
    finally:
        leases.release(LEASE, holder)


def discard_unused(file: StoredFile) -> None:
    """Move an unused file to the trash, unless it has a row by now.

    The store takes it back if another process that stores the same content needs it.
    """
    if not Artifact.objects.filter(pk=file.digest).exists():
        store().discard(file.digest, stored_before=time.time() + CLOCKS)


class _Run:
    """One run. The steps are in the order in which rows lead to files."""

    def __init__(self, holder: str, stop: Event, *, dry: bool) -> None:
        self.holder, self.stop, self.dry = holder, stop, dry
        self.limit = clock.now() - GRACE
        self.before = time.time() - GRACE.total_seconds()
        self.found = Collected()

    def all(self) -> Collected:
        for step in (self._purge, self._rows, self._files, self._checkpoints, self._trash):
            if self.stop.is_set():
                break
            step()
        if not self.dry:
            store().erase_incomplete(before=self.before)
            self._audit()
        return self.found

    def _fence(self) -> None:
        if not self.dry and not leases.renew(LEASE, self.holder, seconds=LEASE_SECONDS):
            raise StaleFence("the collection was suspended for longer than its lease; it ends")

    def _items_under_lease[T](self, items: Iterable[T]) -> Iterator[T]:
        for item in items:
            if self.stop.is_set():
                return
            self._fence()
            yield item

    def _purge(self) -> None:
        if self.dry:
            self.found.deletions = purge.due_deletions().count()
            return
        while not self.stop.is_set():
            self._fence()
            deadline = time.monotonic() + PURGE_SECONDS
            done = purge.purge_due(deadline=deadline)
            self.found.deletions += done
            # A large deletion takes several rounds; one that fails early waits for the next run.
            if not purge.due_deletions().exists() or (not done and time.monotonic() < deadline):
                break

    def _rows(self) -> None:
        """Delete the rows without a reference, each with its file."""
        rows = references.unreferenced_artifacts().values_list("pk", "bytes", "stored")
        old = {digest: size for digest, size, stored in rows if stored < self.limit}
        self.found.waiting = len(rows) - len(old)
        self.found.waiting_bytes = sum(size for _, size, _ in rows) - sum(old.values())
        for digest in references.mentioned_digests(old):
            del old[digest]
        for digest, size in self._items_under_lease(old.items()):
            if self.dry or self._delete(digest):
                self.found.files += 1
                self.found.bytes += size

    def _delete(self, digest: str) -> bool:
        with transaction.atomic():
            self._fence()
            # Locked, so that no transaction can begin to refer to it; then the conditions are checked again.
            if Artifact.objects.select_for_update().filter(pk=digest).first() is None:
                return False
            row = references.unreferenced_artifacts(stored_before=self.limit).filter(pk=digest)
            if not row.exists() or not Artifact.objects.filter(pk=digest).delete()[0]:
                return False
        store().discard(digest, stored_before=self.before)
        return True

    def _files(self) -> None:
        """Delete the files without a row: a process died before it wrote the row, or after it deleted it."""
        old = (entry for entry in store().files() if entry.time < self.before)
        for entries in batched(old, BATCH):
            for entry in self._items_under_lease(_without_row(entries)):
                if self.dry or store().discard(entry.digest, stored_before=self.before):
                    self.found.files += 1
                    self.found.bytes += entry.bytes

    def _checkpoints(self) -> None:
        """Delete the checkpoint folders that purged jobs left, and copies that no row names."""
        folders = {
            int(folder.name.removeprefix(JOB_FOLDER)): folder
            for folder in store().checkpoint_root.glob(f"{JOB_FOLDER}*")
            if folder.name.removeprefix(JOB_FOLDER).isdecimal()
        }
        for keys in batched(folders, BATCH):
            existing = set(Job.everything.filter(pk__in=keys).values_list("pk", flat=True))
            for key in self._items_under_lease(key for key in keys if key not in existing):
                self.found.checkpoints += 1
                self.found.checkpoint_bytes += _size_of(folders[key])
                if not self.dry:
                    shutil.rmtree(folders[key], ignore_errors=True)
        if (copies := store().checkpoint_copies) is not None:
            left = checkpoint_copies.without_row(copies, before=self.before)
            for folder, size in self._items_under_lease(left):
                self.found.checkpoints += 1
                self.found.checkpoint_bytes += size
                if not self.dry:
                    copies.erase(folder)

    def _trash(self) -> None:
        """Erase old files, and move those back that have a row again."""
        for entries in batched(store().trash(), BATCH):
            gone = {entry.digest for entry in _without_row(entries)}
            for entry in self._items_under_lease(entries):
                if entry.digest not in gone:
                    if not self.dry:
                        store().path(entry.digest)
                elif entry.time < self.before:
                    self.found.erased += 1
                    self.found.erased_bytes += entry.bytes
                    if not self.dry:
                        store().erase(entry.digest)

    def _audit(self) -> None:
        done = {name: count for name, count in asdict(self.found).items() if count}
        with transaction.atomic():
            if done.keys() - {"waiting", "waiting_bytes"}:
                audit.record("storage.collect", "storage", by=None, **done)
            totals.add(totals.COLLECTIONS, {"completed": 1})
            totals.add(totals.COLLECTED_FILES, {"": self.found.files + self.found.checkpoints})
            totals.add(totals.COLLECTED_BYTES, {"": self.found.bytes + self.found.checkpoint_bytes})


def _without_row(entries: Iterable[StoreEntry]) -> list[StoreEntry]:
    listed = list(entries)
    digests_with_row = set(
        Artifact.objects.filter(pk__in=[entry.digest for entry in listed]).values_list("pk", flat=True)
    )
    return [entry for entry in listed if entry.digest not in digests_with_row]


def _size_of(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file())


class Background:
    """Runs collections in a thread of the scheduler, which must not wait for a large store.

    Args:
        stop: ends a run early when it is set.
        function: one run.
        name: of the thread.
    """

    def __init__(
        self, stop: Event, function: Callable[..., object] = collect, *, name: str = "collection"
    ) -> None:
        self._stop, self._function, self._name = stop, function, name
        self._thread: Thread | None = None

    def __call__(self) -> None:
        """Start a run unless the previous one is still active."""
        if self._thread is None or not self._thread.is_alive():
            self._thread = Thread(target=self._run, name=self._name, daemon=True)
            self._thread.start()

    def _run(self) -> None:
        try:
            with log_errors(log, f"the {self._name} failed; the next run tries again"):
                self._call()
        finally:
            connections.close_all()

    def _call(self) -> None:
        try:
            self._function(stop=self._stop)
        except NotOwned as error:
            log.warning("the %s changes nothing: %s", self._name, error)

    def join(self, seconds: float) -> None:
        """Wait until the run ends."""
        if self._thread is not None:
            self._thread.join(seconds)
