"""Claims a folder for one prediction server, so that two of one home never write the same files."""

import fcntl
from pathlib import Path
from typing import NamedTuple, TextIO

MAX_SERVERS = 99
_LOCK = "lock"


class ClaimedHome(NamedTuple):
    """The folder of this server.

    Attributes:
        folder: its state and cached files.
        instance: its number among the servers of one home; the first is 1.
        lock: keeps the claim until the process ends.
    """

    folder: Path
    instance: int
    lock: TextIO

    def own_name(self, path: Path) -> Path:
        """Return the name of a file that each server of one home writes beside those of the others."""
        return path if self.instance == 1 else path.with_name(f"{path.stem}-{self.instance}{path.suffix}")


def claim_home(home: Path) -> ClaimedHome:
    """Claim the home, or a folder beside it if another server has it.

    Raises:
        OSError: the folder cannot be made, or there are too many servers.
    """
    for instance in range(1, MAX_SERVERS + 1):
        folder = home if instance == 1 else home.with_name(f"{home.name}-{instance}")
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = (folder / _LOCK).open("a")
        try:
            # Of this process alone: a child that outlives it for a moment must not hold the home.
            fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            lock.close()
        else:
            return ClaimedHome(folder, instance, lock)
    raise OSError(f"{MAX_SERVERS} prediction servers use the home {home}")
