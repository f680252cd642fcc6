"""Keeps the dashboard's last answers about tokens, in memory and on disk, by the SHA-256 of the token."""

import hashlib
import logging
import os
import threading
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import batched
from math import inf
from pathlib import Path

from pydantic import Field, ValidationError

from jobs.spec.base import Frozen
from workers.serving.access import Access

logger = logging.getLogger("trainyard.serving")

MAX_CALLERS = 10_000
# Times of confirmations alone are worth a write of the file only so often.
_SAVE_SECONDS = 300.0
# About a millisecond.
_YIELD_AFTER = 50


class SavedCaller(Frozen):
    """One answer in the file."""

    endpoints: tuple[str, ...] | None
    expires: float | None
    warning: str | None
    confirmed: float
    metrics: bool = False


class SavedCallers(Frozen):
    """The file's content."""

    version: int = 1
    callers: dict[str, SavedCaller] = Field(default_factory=dict)


@dataclass(slots=True)
class Caller:
    """A token's access.

    Attributes:
        access: the last answer.
        confirmed: the monotonic time at which the dashboard gave or repeated it.
        used: the monotonic time of the last request.
        tried: the monotonic time of the last question without an answer.
        is_noted: whether the dashboard knows of this request.
    """

    access: Access
    confirmed: float
    used: float
    tried: float = -inf
    is_noted: bool = True


class KnownCallers:
    """The tokens that the dashboard has known. An answer holds for `grace` seconds after its confirmation."""

    def __init__(self, path: Path | None, grace: float) -> None:
        """Read the file, if there is one.

        Args:
            path: the file; None keeps answers in memory alone.
            grace: how long an answer holds while the dashboard does not repeat it.
        """
        self._path, self._grace = path, grace
        self._callers: dict[str, Caller] = {} if path is None else _read(path)
        self._is_changed, self._saved_at = False, time.monotonic()
        # A save whose waiting task was cancelled still runs in its thread.
        self._writing = threading.Lock()

    @property
    def is_empty(self) -> bool:
        """Whether no answer holds."""
        return all(self.get(digest) is None for digest in self._callers)

    def get(self, digest: str) -> Caller | None:
        """Return a token's caller while the last answer holds."""
        caller = self._callers.get(digest)
        if caller is None or time.monotonic() - caller.confirmed > self._grace:
            return None
        return caller

    def use(self, caller: Caller) -> None:
        """Note a request. It is called for each one."""
        caller.used, caller.is_noted = time.monotonic(), False

    def put(self, digest: str, access: Access) -> Caller:
        """Store an answer."""
        now = time.monotonic()
        known = self._callers.get(digest)
        if known is None:
            if len(self._callers) >= MAX_CALLERS:
                del self._callers[min(self._callers, key=lambda key: self._callers[key].used)]
            known = self._callers[digest] = Caller(access, now, now)
            self._is_changed = True
        elif known.access != access:
            known.access, self._is_changed = access, True
        known.confirmed = now
        return known

    def remove(self, digest: str) -> None:
        """Forget a token that the dashboard no longer knows."""
        self._is_changed |= self._callers.pop(digest, None) is not None

    def digests(self) -> list[str]:
        """Return the tokens whose answers are kept, without those that were not used for the grace."""
        oldest = time.monotonic() - self._grace
        for digest in [key for key, caller in self._callers.items() if caller.used < oldest]:
            self.remove(digest)
        return list(self._callers)

    def take_used(self, digests: Collection[str]) -> list[str]:
        """Return those with requests of which the dashboard does not know, and note that it will."""
        used = [key for key in digests if (one := self._callers.get(key)) is not None and not one.is_noted]
        for digest in used:
            self._callers[digest].is_noted = True
        return used

    def to_save(self) -> list[tuple[str, Caller]] | None:
        """Return the callers for the next file; None while the one on disk is good enough."""
        now = time.monotonic()
        if self._path is None or not (self._is_changed or now - self._saved_at > _SAVE_SECONDS):
            return None
        self._is_changed, self._saved_at = False, now
        return list(self._callers.items())

    def save(self, callers: Sequence[tuple[str, Caller]]) -> None:
        """Replace the file atomically. Call it in a thread: many callers take long.

        Raises:
            OSError: the disk is full or broken; the next change is saved again.
        """
        assert self._path is not None  # noqa: S101 - there are no callers to save otherwise
        try:
            # One at a time, also while the content is made: an older one must not replace a newer one.
            with self._writing:
                _replace(self._path, _content_of(callers))
        except OSError:
            self._is_changed = True
            raise


def _content_of(callers: Sequence[tuple[str, Caller]]) -> bytes:
    """Return the file's content. Requests are answered between small parts of it."""
    now, clock = time.monotonic(), time.time()
    parts: list[str] = []
    for some in batched(callers, _YIELD_AFTER):
        parts += [f'"{digest}":{_saved(one, clock - now).model_dump_json()}' for digest, one in some]
        # Otherwise the other thread would wait for the interpreter's whole switch interval.
        time.sleep(0)
    body = f'{{"version":{SavedCallers().version},"callers":{{{",".join(parts)}}}}}'.encode()
    return _checksum(body) + b"\n" + body


def _saved(caller: Caller, offset: float) -> SavedCaller:
    # First: an answer that arrives meanwhile must not give its time to the one before.
    confirmed = caller.confirmed
    access = caller.access
    return SavedCaller(
        endpoints=None if access.endpoints is None else tuple(sorted(access.endpoints)),
        expires=access.expires,
        warning=access.warning,
        confirmed=confirmed + offset,
        metrics=access.metrics,
    )


def _read(path: Path) -> dict[str, Caller]:
    """Return the callers in the file; none if it is missing, cut off or changed: they are looked up again."""
    try:
        checksum, _, body = path.read_bytes().partition(b"\n")
    except FileNotFoundError:
        return {}
    try:
        if checksum != _checksum(body):
            raise ValueError("its checksum is another one")
        saved = SavedCallers.model_validate_json(body)
    except (ValueError, ValidationError) as error:
        logger.error("the known callers in %s are not used: %s", path, error)
        return {}
    now, clock = time.monotonic(), time.time()
    return {
        digest: Caller(
            Access(
                None if one.endpoints is None else frozenset(one.endpoints),
                one.expires,
                one.warning,
                one.metrics,
            ),
            # A clock that was set back makes no answer older than it is.
            confirmed=now - max(0.0, clock - one.confirmed),
            used=now,
        )
        for digest, one in saved.callers.items()
    }


def _checksum(body: bytes) -> bytes:
    return hashlib.sha256(body).hexdigest().encode()


def _replace(path: Path, content: bytes) -> None:
    temporary = path.with_suffix(".new")
    with temporary.open("wb") as file:
        file.write(content)
        # Otherwise the rename could reach the disk before the content.
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
