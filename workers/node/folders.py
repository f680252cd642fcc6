"""The node's folder below the home. Its lock is held as long as the node lives, however it dies."""

import fcntl
import hashlib
import logging
import os
import shutil
import tempfile
from pathlib import Path
from typing import Self

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

    def write_pid(self) -> None:
        """Let people find the process."""
        (self.root / "node.pid").write_text(f"{os.getpid()}\n")


def sweep_dead(own: NodeFolder) -> list[int]:
    """End what dead nodes of this home left running, remove their files, and return their attempts.

    None of those attempts can be ours: a node that starts is a new worker, so their spools are worthless.
    """
    left: list[int] = []
    for root in own.root.parent.iterdir():
        lock = None if root == own.root else _try_lock(root)
        if root != own.root and lock is None:
            continue  # alive
        left += _clear(root)
        if lock is not None:
            shutil.rmtree(root, ignore_errors=True)
            os.close(lock)
    return sorted(left)


def _clear(root: Path) -> list[int]:
    for pid in end_orphans(root / "runners"):
        log.warning("ended runner %s that a dead worker had left behind", pid)
    attempts = root / "attempts"
    left = [int(folder.name) for folder in attempts.glob("*") if folder.name.isdigit()]
    shutil.rmtree(attempts, ignore_errors=True)
    shutil.rmtree(root / "runners", ignore_errors=True)
    return left


def _try_lock(root: Path) -> int | None:
    descriptor = os.open(root / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor
