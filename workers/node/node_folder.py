"""Claims the node's folder below the home by a file lock, and cleans up after dead nodes.

The kernel releases the lock when the node's process dies in any way.
"""

import contextlib
import fcntl
import hashlib
import logging
import os
import shutil
import tempfile
from pathlib import Path
from typing import NamedTuple, Self

from jobs.private_files import create_private_folder
from workers.confinement.isolation.access import clean_up
from workers.supervise.pool.orphans import end_orphans
from workers.supervise.pool.runner_checkpoints import tidy_after_crash

log = logging.getLogger(__name__)

# Linux stores the path of a Unix socket in 108 bytes, of which the last one is zero.
SOCKET_PATH_LIMIT = 107
USER_LOCKS = "runner-users"
"""The folder of the home with the user ids of runners: for each its lock, and the folders that it may use."""


class WorkerNameInUse(Exception):
    """A running node in this home already uses the name."""


class NodeFolder:
    """`<home>/nodes/<name>` with runner folders, attempt folders and the hint socket.

    Create it with `claim`.
    """

    def __init__(self, root: Path, lock: int) -> None:
        self.root = root
        # The descriptor stays open for the life of the process: closing it would release the lock.
        self._lock = lock
        self.runners = root / "runners"
        self.attempts = root / "attempts"

    @classmethod
    def claim(cls, home: Path, name: str) -> Self:
        """Create and lock the folder for the node `name`.

        Raises:
            WorkerNameInUse: a running node holds the lock.
        """
        root = home / "nodes" / name
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = _try_lock(root)
        if lock is None:
            raise WorkerNameInUse(f"A worker named {name!r} already runs in {home}. Choose another --name.")
        return cls(root, lock)

    @classmethod
    def claim_numbered(cls, home: Path, name: str) -> Self:
        """Claim the folder `name`, or else `name-2`, `name-3` and so on."""
        for number in range(1, 10_000):
            try:
                return cls.claim(home, name if number == 1 else f"{name}-{number}")
            except WorkerNameInUse:
                continue
        raise WorkerNameInUse(f"10,000 workers named {name!r} run in {home}.")

    @property
    def name(self) -> str:
        return self.root.name

    @property
    def socket(self) -> Path:
        """The path to the hint socket: here, or in the temporary folder if that path is too long to bind.

        Raises:
            NotPrivate: another user has created the folder in the temporary folder, or has access to it.
        """
        inside = self.root / "hints.sock"
        if len(os.fsencode(inside)) <= SOCKET_PATH_LIMIT:
            return inside
        digest = hashlib.sha256(os.fsencode(self.root)).hexdigest()[:12]
        # The digest distinguishes the nodes of several homes, and the user id the users of this machine.
        short = Path(tempfile.gettempdir()) / f"trainyard-{os.getuid()}-{digest}"
        return create_private_folder(short) / "hints.sock"

    def write_worker_id(self, worker_id: int, name: str) -> None:
        """Store the worker's id, pid and name, so that a later node can end its attempts after a crash."""
        # Without the file, attempts end when their leases expire, so a full disk must not end the node.
        with contextlib.suppress(OSError):
            _worker_file(self.root).write_text(f"{worker_id} {os.getpid()} {name}\n")


class DeadWorker(NamedTuple):
    """A worker whose node died."""

    id: int
    name: str
    pid: int


def clean_up_dead_nodes(node_folder: NodeFolder) -> list[DeadWorker]:
    """Kill the processes that dead nodes in this home left, remove their files, and return their workers.

    A starting node registers as a new worker, so it never takes over their attempts or their spools.
    """
    # Before the files are deleted, to which these processes may still write.
    clean_up(node_folder.root.parent.parent / USER_LOCKS)
    dead: list[DeadWorker] = []
    for root in node_folder.root.parent.iterdir():
        # Its own folder may have been used by a dead node of the same name. It holds that lock already.
        lock = None if root == node_folder.root else _try_lock(root)
        if root != node_folder.root and lock is None:
            continue  # that node is running
        dead += _clear(root)
        if lock is not None:
            shutil.rmtree(root, ignore_errors=True)
            os.close(lock)
    return sorted(dead)


def _clear(root: Path) -> list[DeadWorker]:
    for pid in end_orphans(root / "runners"):
        log.warning("killed runner %s, which a dead worker left behind", pid)
    tidy_after_crash(root / "runners")
    shutil.rmtree(root / "attempts", ignore_errors=True)
    shutil.rmtree(root / "runners", ignore_errors=True)
    # The node may have died before it had written the file, or while it wrote it.
    with contextlib.suppress(OSError, ValueError):
        # Earlier versions wrote no name.
        number, process, *name = _worker_file(root).read_text().split()
        return [DeadWorker(int(number), name[0] if name else root.name, int(process))]
    return []


def _worker_file(root: Path) -> Path:
    return root / "worker"


def _try_lock(root: Path) -> int | None:
    # O_CLOEXEC: a child that inherited the descriptor would keep the lock after the node's death.
    try:
        descriptor = os.open(root / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except FileNotFoundError:
        return None  # another starting node has just deleted the folder of a dead one
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor
