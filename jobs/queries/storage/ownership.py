"""Finds out whether the artifact store belongs to this installation.

A store has the identity of its installation. A restored copy of a database gets another one, so a copy with
the address of the original's store only reads it: otherwise each would delete the files that only the other
one needs.
"""

import time
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Thread
from typing import NamedTuple

from django.conf import settings
from django.db import DatabaseError, InterfaceError, connection, connections

from jobs import program
from jobs.errors import NotOwned
from jobs.models import Lease
from jobs.queries import compatibility
from jobs.queries.code.installation import current_settings
from jobs.store import store

RESTORED = "restored"
"""The lease that a restored database has until its store is known. Its holder is the new identity.

A lease, because a restored database may be older than the column for the identity.
"""
FRESH_SECONDS = 30.0
"""How long an answer is used again: adopting a store takes effect so much later in other processes."""
PATIENCE_SECONDS = 2.0
"""How long frequent calls wait for the store. The scheduler's lease lasts ten."""


class Identity(NamedTuple):
    """The installation's identity, empty if it has none, and whether it is a copy without a store."""

    text: str
    is_copy: bool


class StoreMark(NamedTuple):
    """The identity in the store, and, if a copy finds none there, whether it has files."""

    owner: str | None
    has_files: bool


class _Answer(NamedTuple):
    place: str
    problem: str | None
    until: float


class _Question(NamedTuple):
    place: str
    is_copy: bool


_last: list[_Answer] = []
_asked: "dict[_Question, Future[StoreMark]]" = {}
"""The questions to the store that have no answer yet."""


def identity() -> Identity:
    """Return the installation's identity."""
    restored = Lease.objects.filter(name=RESTORED).values_list("holder", flat=True).first()
    if restored is not None:
        return Identity(restored, is_copy=True)
    return Identity(current_settings().identity, is_copy=False)


def older_identity() -> str:
    """Return the identity of a database that may have an older schema; empty if it has none."""
    if Lease._meta.db_table in connection.introspection.table_names():
        restored = Lease.objects.filter(name=RESTORED).values_list("holder", flat=True).first()
        if restored is not None:
            return restored
    return compatibility.recorded("identity")


def problem() -> str | None:
    """Return why nothing may be changed in the store, in sentences; None if it is this installation's.

    Raises:
        OSError: the store does not answer.
    """
    own = identity()
    return problem_between(own, read_mark(is_copy=own.is_copy))


def problem_between(own: Identity, mark: StoreMark) -> str | None:
    """Return why an installation may change nothing in a store, in sentences; None if it may."""
    if mark.owner is None:
        # An upgraded installation finds its files in a store without an owner, as a copy of one does.
        return _sentence("has files, and no installation is known") if mark.has_files else None
    if mark.owner == own.text:
        return None
    return _sentence(f"belongs to another installation ({mark.owner[:8]})")


def read_mark(*, is_copy: bool) -> StoreMark:
    """Read the store's mark. The database is not asked.

    Args:
        is_copy: the installation is a copy.

    Raises:
        OSError: the store does not answer. Each kind of object storage has exceptions of its own.
    """
    try:
        owner = store().owner()
        looks = owner is None and is_copy
        return StoreMark(owner, has_files=looks and next(iter(store().files()), None) is not None)
    except OSError:
        raise
    except Exception as error:
        raise OSError(f"{settings.TRAINYARD_ARTIFACTS} does not answer: {error}") from error


def recent_problem() -> str | None:
    """Return `problem`, as it was at most `FRESH_SECONDS` ago, for calls that are frequent.

    Raises:
        OSError: the store does not answer, or not within `PATIENCE_SECONDS`.
    """
    if not _is_fresh():
        own = identity()
        sentence = problem_between(own, _read_in_time(is_copy=own.is_copy))
        _last[:] = [_Answer(_place(), sentence, time.monotonic() + FRESH_SECONDS)]
    return _last[0].problem


def _read_in_time(*, is_copy: bool) -> StoreMark:
    """Read the store's mark in a thread: the scheduler and uploads must not wait for a silent store.

    The next call waits for the same answer, so that an outage leaves one thread behind.
    """
    key = _Question(_place(), is_copy)
    answer: Future[StoreMark] = Future()
    # Another thread may have asked at this moment.
    if (asked := _asked.setdefault(key, answer)) is answer:
        Thread(target=_read_into, args=(answer, is_copy), name="store-mark", daemon=True).start()
    try:
        return asked.result(timeout=PATIENCE_SECONDS)
    except TimeoutError:
        if asked.done():
            raise
        raise TimeoutError(
            f"{settings.TRAINYARD_ARTIFACTS} does not answer within {PATIENCE_SECONDS:g} s"
        ) from None
    finally:
        # Not a further question, which another thread may have asked since.
        if asked.done() and _asked.get(key) is asked:
            _asked.pop(key, None)


def _read_into(answer: "Future[StoreMark]", is_copy: bool) -> None:
    try:
        answer.set_result(read_mark(is_copy=is_copy))
    except OSError as error:
        answer.set_exception(error)


def forget() -> None:
    """Let `recent_problem` look again: this process has changed the owner."""
    _last.clear()


def require_own() -> None:
    """Require that the store may be changed.

    Raises:
        NotOwned: it belongs to another installation.
    """
    if _is_fresh():
        sentence = _last[0].problem
    else:
        # A thread of its own is in no transaction, and its connection is closed with it.
        with ThreadPoolExecutor(1, "store-owner") as thread:
            sentence = thread.submit(_answer).result()
    if sentence is not None:
        raise NotOwned(sentence)


def _place() -> str:
    return str(store().checkpoint_root)


def _is_fresh() -> bool:
    return bool(_last) and _last[0].place == _place() and time.monotonic() < _last[0].until


def _answer() -> str | None:
    try:
        # Without an owner the store is not prepared yet, and the database is not asked.
        return None if _read_in_time(is_copy=False).owner is None else recent_problem()
    except (DatabaseError, InterfaceError, OSError):
        # An outage stops no run, and storing a file deletes nothing.
        return _last[0].problem if _last else None
    finally:
        connections.close_all()


def _sentence(reason: str) -> str:
    return (
        f"The artifact store {settings.TRAINYARD_ARTIFACTS} {reason}, so it is only read. If that "
        f"installation is no longer used, run `{program.command_line('adopt-store')}`; otherwise give this "
        "one a store of its own (TRAINYARD_ARTIFACTS)."
    )
