"""Lets the first of several processes compile a program, while the others wait to read it from the cache.

A search's trials start together and need the same programs. Without locks each would compile all
these, on cores that they share.
"""

import fcntl
import logging
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

log = logging.getLogger(__name__)

WAIT_SECONDS = 60.0
FIRST_PAUSE, LAST_PAUSE = 0.01, 0.2
"""Seconds between two attempts to lock a file; the pause grows."""
_gave_up = False


@contextmanager
def first(file: Path) -> Iterator[bool]:
    """Yield whether this process is the first to lock `file`; if not, wait before until the first one ends.

    The kernel releases a lock when its process ends in any way, so a killed runner stops no other. A process
    that has waited in vain for `WAIT_SECONDS` never waits again: the first one may be suspended, and first
    for more programs.
    """
    descriptor = None if _gave_up else open_lock(file)
    if descriptor is None:
        yield True
        return
    try:
        is_first = _try(descriptor)
        if not is_first:
            _wait(descriptor)
        try:
            yield is_first
        finally:
            if is_first:
                # Those that wait have it open. Later ones find the program.
                with suppress(OSError):
                    file.unlink()
    finally:
        os.close(descriptor)


def open_lock(file: Path) -> int | None:
    """Open a lock's file; return None if it cannot be used: then each process compiles for itself."""
    try:
        # Runners may have users of their own. The access list of the folder, not this mode, decides which of
        # them open the file. Any of them may write to the folder, so the file may be a link, or a pipe whose
        # opening would wait.
        flags = os.O_RDONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        descriptor = os.open(file, flags, 0o666)
    except OSError as error:
        log.debug("%s is not used as a lock: %s", file, error)
        return None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        log.debug("%s is not used as a lock: it is no regular file", file)
        return None
    return descriptor


def _try(descriptor: int) -> bool:
    """Lock a file if no other process holds it; return whether this succeeded, or cannot succeed here."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:  # a file system without locks
        log.debug("this file system has no locks: %s", error)
    return True


def _wait(descriptor: int) -> None:
    """Wait until a lock is free, as long as allowed."""
    global _gave_up
    deadline, pause = time.monotonic() + WAIT_SECONDS, FIRST_PAUSE
    while not _try(descriptor):
        if time.monotonic() > deadline:
            log.warning("waited %.0f s for another process that compiles the same program", WAIT_SECONDS)
            _gave_up = True
            return
        time.sleep(pause)
        pause = min(LAST_PAUSE, pause * 1.5)
