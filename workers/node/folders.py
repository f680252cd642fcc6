"""The node's folder below the home. Its lock is held as long as the node lives, however it dies."""

import contextlib
import fcntl
import hashlib
import logging
import os
import shutil
import tempfile
from pathlib import Path
from typing import NamedTuple, Self

from workers.supervise.orphans import end_orphans

log = logging.getLogger(__name__)

SOCKET_PATH_LIMIT = 107  # sun_path holds 108 bytes with its closing zero


class NameTaken(Exception):
    """A living node of this home has that name."""


class NodeFolder:
    """`<home>/nodes/<name>`: its runners, its attempts, its socket. Made by `claim`."""

    def __init__(self, root: Path, lock: int) -> None:
        self.root = root
        self._lock = lock
        self.runners = root / "runners"
        self.attempts = root / "attempts"

    @classmethod
    def claim(cls, home: Path, name: str) -> Self:
        """Take the folder of the node `name`.

        Raises:
            NameTaken: a living node holds it.
        """
        root = home / "nodes" / name
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = _try_lock(root)
        if lock is None:
            raise NameTaken(f"A worker named {name!r} already runs in {home}. Choose another --name.")
        return cls(root, lock)

    @classmethod
    def claim_numbered(cls, home: Path, name: str) -> Self:
        """Take the folder `name`, else `name-2`, `name-3` and so on."""
        for number in range(1, 10_000):
            try:
                return cls.claim(home, name if number == 1 else f"{name}-{number}")
            except NameTaken:
                continue
        raise NameTaken(f"10,000 workers named {name!r} run in {home}.")

    @property
    def name(self) -> str:
        """The node's name."""
        return self.root.name

    @property
    def socket(self) -> Path:
        """Where hints arrive: here, or in a short place when this path is too long to bind."""
        inside = self.root / "hints.sock"
        if len(os.fsencode(inside)) <= SOCKET_PATH_LIMIT:
            return inside
        digest = hashlib.sha256(os.fsencode(self.root)).hexdigest()[:12]
        short = Path(tempfile.gettempdir()) / f"trainyard-{os.getuid()}-{digest}"
        short.mkdir(mode=0o700, exist_ok=True)
        return short / "hints.sock"

    def sign(self, worker_id: int) -> None:
        """Note which worker the node is now, for whoever finds the folder after its death."""
        with contextlib.suppress(OSError):  # on a full disk leases run out instead
            _note(self.root).write_text(f"{worker_id} {os.getpid()}\n")


class Dead(NamedTuple):
    """A worker whose node died."""

    id: int
    name: str
    pid: int


def sweep_dead(own: NodeFolder) -> list[Dead]:
    """End what dead nodes of this home left running, remove their files, and return who they were.

    A node that starts is a new worker, so none of their attempts can be ours and their spools are worthless.
    """
    left: list[Dead] = []
    for root in own.root.parent.iterdir():
        lock = None if root == own.root else _try_lock(root)
        if root != own.root and lock is None:
            continue  # alive
        left += _clear(root)
        if lock is not None:
            shutil.rmtree(root, ignore_errors=True)
            os.close(lock)
    return sorted(left)


def _clear(root: Path) -> list[Dead]:
    for pid in end_orphans(root / "runners"):
        log.warning("ended runner %s that a dead worker had left behind", pid)
    shutil.rmtree(root / "attempts", ignore_errors=True)
    shutil.rmtree(root / "runners", ignore_errors=True)
    with contextlib.suppress(OSError, ValueError):  # it died before it had signed, or while it did
        worker_id, pid = map(int, _note(root).read_text().split())
        return [Dead(worker_id, root.name, pid)]
    return []


def _note(root: Path) -> Path:
    return root / "worker"


def _try_lock(root: Path) -> int | None:
    descriptor = os.open(root / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor
