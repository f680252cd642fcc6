"""Copies a file from its source into the store, within limits for its size, its time and the disk."""

import errno
import logging
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import FrameType

from django.conf import settings
from django.db import DatabaseError

from jobs import upload_formats
from jobs.actions.data import fetch_attempts
from jobs.actions.data.fetch_attempts import OPEN_SECONDS, Claimed, NotHeld, Work
from jobs.actions.storage import collection
from jobs.errors import FetchFailed, TrainyardError
from jobs.fetching.lease import Lease
from jobs.sources.base import Source
from jobs.sources.opening import open_source
from jobs.store import StoredFile, store

log = logging.getLogger(__name__)

MOST_SECONDS = 6 * 3600
RENEW_SECONDS = 2.0
STEP = 64 * 2**20
"""Bytes that are reserved at once for a file whose size is unknown."""
SLOW_SECONDS = 60.0
SLOW_BYTES = 64 * 1024
"""A source that sends less in `SLOW_SECONDS` is given up, since other fetches wait for its place."""


def run(claimed: Claimed) -> None:
    """Fetch a file, and store the result or the failure's reason. It raises nothing."""
    try:
        _fetch(claimed)
    except NotHeld:
        log.info("fetch %s was cancelled, or belongs to another process", claimed.fetch)
    except TrainyardError as error:
        fetch_attempts.fail(claimed, error)
    except DatabaseError:
        # The process ends, and the fetch is begun again.
        log.warning("fetch %s: the database is unavailable", claimed.fetch)
    except Exception as error:  # noqa: BLE001 - a person must read that it failed
        # Without the message, which may contain an address or an answer of the source.
        log.error("fetch %s failed: %s", claimed.fetch, type(error).__name__)
        fetch_attempts.fail(claimed, _unexpected(error))


def _unexpected(error: Exception) -> FetchFailed:
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return FetchFailed("The disk of the artifact store is full.", code="disk_full")
    return FetchFailed(f"The fetch ended with an unexpected error ({type(error).__name__}).")


def _fetch(claimed: Claimed) -> None:
    work = fetch_attempts.work_of(claimed)
    with _time_limit(OPEN_SECONDS, "The source did not begin to send within two minutes."):
        source = open_source(work.address, work.credential)
    with Lease(claimed) as lease:
        with _time_limit(MOST_SECONDS, f"The fetch took longer than {MOST_SECONDS // 3600} hours."):
            blocks = lease.after(Copying(claimed, source).blocks())
            stored = store().put_blocks(blocks, check=partial(_check, work))
        try:
            fetch_attempts.complete(claimed, stored, etag=source.etag, modified=source.modified)
        except (NotHeld, TrainyardError):
            # Another upload may have reached the quota meanwhile, or a person has cancelled this one.
            collection.discard_unused(stored)
            raise


def _check(work: Work, received: StoredFile, path: Path) -> None:
    """Refuse a file before it is in the store, where it would count in no quota until the next collection."""
    _check_digest(received, work)
    upload_formats.format_of_upload(path, work.name)


def _check_digest(stored: StoredFile, work: Work) -> None:
    if not work.sha256 or stored.digest == work.sha256:
        return
    if work.unchanged_since:
        raise FetchFailed(
            f"The file at the address has changed since {work.unchanged_since}: it had the sha256 "
            f"{work.sha256}, and has {stored.digest} now. Add the changed file as a new version.",
            code="source_changed",
        )
    raise FetchFailed(
        f"The file has sha256 {stored.digest}, not {work.sha256} as the request demands.", code="digest"
    )


@contextmanager
def _time_limit(seconds: float, message: str) -> Iterator[None]:
    """Raise `FetchFailed` in the main thread if the block takes longer."""

    def give_up(_: int, __: FrameType | None) -> None:
        raise FetchFailed(message, code="too_slow")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


class Copying:
    """Passes on a source's blocks, and checks the limits before each is written.

    Args:
        claimed: the fetch.
        source: its data.
        clock: returns seconds.
    """

    def __init__(
        self, claimed: Claimed, source: Source, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._claimed, self._source, self._clock = claimed, source, clock
        self._received = self._reserved = 0
        self._renewed = self._measured = clock()
        self._measured_bytes = 0

    def blocks(self) -> Iterator[bytes]:
        """Yield the data.

        Raises:
            NotHeld: the fetch was cancelled, or belongs to another process.
            QuotaReached: the file does not fit into its project's disk quota.
            FetchFailed: it is too large or too slow, or has another size than its source announced.
        """
        size = self._source.size
        self._require_size(size or 0)
        self._reserve(size or 0)
        self._renew()
        for block in self._source.blocks:
            self._received += len(block)
            if size is not None and self._received > size:
                raise FetchFailed(f"The source announced {size:,} bytes, and sent more.", code="wrong_size")
            self._require_size(self._received)
            if self._received > self._reserved:
                self._reserve(self._received + STEP)
            self._require_speed()
            if self._clock() - self._renewed >= RENEW_SECONDS:
                self._renew()
            yield block
        if size is not None and self._received < size:
            raise FetchFailed(
                f"The source announced {size:,} bytes, and sent only {self._received:,}.", code="wrong_size"
            )
        self._renew()

    def _require_size(self, size: int) -> None:
        limit: int = settings.TRAINYARD_MAX_UPLOAD_BYTES
        if size > limit:
            raise FetchFailed(
                f"The file has more than {limit:,} bytes, the limit of an upload.", code="too_large"
            )

    def _reserve(self, size: int) -> None:
        """Count bytes against the project's quota, and require that they fit on the disk."""
        self._require_space(size - self._received)
        fetch_attempts.reserve(self._claimed, size)
        self._reserved = size

    def _require_space(self, adding: int) -> None:
        free = shutil.disk_usage(store().checkpoint_root).free
        if free - adding < settings.TRAINYARD_MIN_FREE_BYTES:
            raise FetchFailed("The disk of the artifact store has no room for the file.", code="disk_full")

    def _renew(self) -> None:
        fetch_attempts.renew(self._claimed, received=self._received, total=self._source.size)
        self._require_space(0)
        self._renewed = self._clock()

    def _require_speed(self) -> None:
        now = self._clock()
        if now - self._measured < SLOW_SECONDS:
            return
        if self._received - self._measured_bytes < SLOW_BYTES:
            raise FetchFailed(
                f"The source sent less than {SLOW_BYTES // 1024} KiB in a minute.", code="stalled"
            )
        self._measured, self._measured_bytes = now, self._received
