"""Claims user ids on this machine, also across network namespaces, by a file for each id.

The file outlives its lock. It names the home that had the id last, which the runs cannot change: only
processes that this home has left may be killed by a later one.
"""

import contextlib
import fcntl
import os
import secrets
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from jobs.atomic_files import create_once
from jobs.private_files import NotPrivate, create_private_folder

FOLDER = "trainyard-runner-users"
# The second one if the service may not write to the first.
PARENTS = (Path("/run"), Path(tempfile.gettempdir()))
HOME_ID = ".id"
"""The file beside the locks of a home with the id of the home."""


@dataclass(frozen=True)
class MachineClaim:
    """A user id's place on this machine, locked.

    Attributes:
        home: the id of the home that has locked it.
        file: the open file.
    """

    home: str
    file: int

    @classmethod
    @contextlib.contextmanager
    def lock(cls, uid: int, home: str) -> Iterator["MachineClaim"]:
        """Lock an id for a home.

        Raises:
            OSError: EWOULDBLOCK, it is in use, or the file cannot be opened.
        """
        file = os.open(_folder() / str(uid), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield cls(home, file)
        finally:
            os.close(file)

    def is_of_home(self) -> bool:
        """Return whether this home had the id last."""
        return self._last() == self.home

    def is_new(self) -> bool:
        """Return whether no home had the id since the machine was started."""
        return not self._last()

    def record_home(self) -> None:
        """Note that this home has the id now."""
        os.ftruncate(self.file, 0)
        os.pwrite(self.file, self.home.encode(), 0)

    def _last(self) -> str:
        return os.pread(self.file, 100, 0).decode()


def home_id(locks: Path) -> str:
    """Return the id of the home with these locks. It is the same in all containers of the home."""
    file = locks / HOME_ID
    create_once(file, secrets.token_hex(16).encode())
    return file.read_text()


def _folder() -> Path:
    for parent in PARENTS[:-1]:
        with contextlib.suppress(OSError, NotPrivate):
            return create_private_folder(parent / FOLDER)
    try:
        return create_private_folder(PARENTS[-1] / FOLDER)
    except NotPrivate as error:
        raise OSError(str(error)) from error
