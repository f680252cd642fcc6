"""Claims users for model children with user code, and for the builds that install their packages."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from workers.confinement.isolation.users import VARIABLE, RunnerUser, RunnerUsers, UidRange
from workers.confinement.sandbox.launch import Owner
from workers.serving.versions.sandboxed_model import CodeRefused


def claim_user(home: Path) -> RunnerUser | None:
    """Return a user for one process, if this one is root.

    Args:
        home: the folder with the server's state.

    Raises:
        CodeRefused: it may have none.
        OSError: all are in use.
    """
    users = _users(home)
    return None if users is None else users.claim()


@contextmanager
def claimed_owner(home: Path) -> Iterator[Owner | None]:
    """Yield a user for processes that end with the block, if this one is root. See `claim_user`."""
    users = _users(home)
    if users is None:
        yield None
        return
    with users.claimed() as user:
        yield Owner(user.uid, user.uid)


def _users(home: Path) -> RunnerUsers | None:
    if os.geteuid() != 0:
        return None
    uids = UidRange.read(os.environ)
    if uids is None:
        raise CodeRefused(
            f"the prediction server is root, and {VARIABLE} is off: it can give code of users no user of "
            "its own"
        )
    return RunnerUsers(uids, home / "users")
