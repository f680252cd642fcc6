"""Assigns user ids to runners, so that no two running ones on a machine or in a home share one."""

import contextlib
import errno
import fcntl
import os
import pwd
import random
import signal
import socket
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Self

from workers.confinement.isolation.machine_claims import MachineClaim, home_id

VARIABLE = "TRAINYARD_RUNNER_UIDS"
"""The user ids of runners, as `first-last`; `off` for none. The first is the group of all runners."""
# Systemd lists these ids as unused; containers with 65,536 user ids have them, too.
DEFAULT = "60600-61100"
OFF = "off"
MAX_ID = 2**31 - 1
# Seconds. Until then, killed processes may still end.
KILL_TIMEOUT = 5.0
GRANTS = ".grants.json"
"""The end of the names of the files beside the locks: a user id, and this."""


class UidRange(NamedTuple):
    """The first and the last id. The first is the common group, the others are users."""

    first: int
    last: int

    @classmethod
    def read(cls, environment: Mapping[str, str]) -> Self | None:
        """Return the configured range; None if it is switched off.

        Raises:
            ValueError: the value is not a range.
        """
        text = environment.get(VARIABLE) or DEFAULT
        if text == OFF:
            return None
        first, _, last = text.partition("-")
        if first.isdecimal() and last.isdecimal() and 1000 <= int(first) < int(last) <= MAX_ID:
            return cls(int(first), int(last))
        raise ValueError(
            f'{VARIABLE}={text!r}: write "first-last", such as {DEFAULT}, from 1000 on, or "{OFF}"'
        )


@dataclass
class RunnerUser:
    """A user id that only one process has. `release` it when the process and its files are gone.

    Attributes:
        uid: the user id.
        grants: the file in which the holder of the id lists the folders that the user may use.
        claim: its place on this machine.
    """

    uid: int
    grants: Path
    claim: MachineClaim
    _locks: contextlib.ExitStack

    def end_left(self) -> bool:
        """Kill the processes of an earlier holder in this home; return whether the user has none now.

        Processes of others are left alone: the id cannot be used then.
        """
        is_ours = self.claim.is_of_home() or (self.claim.is_new() and self.grants.exists())
        return end_processes(self.uid) if is_ours else not any(_processes(self.uid))

    def release(self) -> None:
        """Let other runners have the id."""
        self._locks.close()

    def end_processes(self) -> bool:
        """Kill the user's processes, also those that left its session; return whether all ended."""
        return end_processes(self.uid)


@dataclass
class RunnerUsers:
    """The user ids in a range. `folder` has the locks that workers in other containers see."""

    range: UidRange
    folder: Path
    _next: int = field(default_factory=lambda: random.randrange(MAX_ID))  # noqa: S311  only spreads the ids

    @property
    def group(self) -> int:
        """The group for all runners."""
        return self.range.first

    def claim(self) -> RunnerUser:
        """Claim a user id that no account on this system and no other runner has.

        Raises:
            OSError: there is none.
        """
        count = self.range.last - self.range.first
        for _ in range(count):
            # In turn: files that a runner left in a shared place must not belong to the next one.
            self._next += 1
            uid = self.range.first + 1 + self._next % count
            if not _is_account(uid) and (user := lock(self.folder, uid)) is not None:
                if user.end_left():
                    user.claim.record_home()
                    return user
                user.release()
        raise OSError(errno.EAGAIN, f"all user ids of {VARIABLE} are in use")

    @contextlib.contextmanager
    def claimed(self) -> Iterator[RunnerUser]:
        """Claim a user for processes that end with the block.

        Raises:
            OSError: see `claim`.
        """
        user = self.claim()
        try:
            yield user
        finally:
            # Otherwise the id stays in use until this process ends.
            if user.end_processes():
                user.release()


def lock(folder: Path, uid: int) -> RunnerUser | None:
    """Claim a user id by a lock in `folder`; return None if it is in use."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with contextlib.ExitStack() as locks:
        # The abstract name is seen by all homes in this network namespace, the machine's file by those in
        # others, and the home's file by all containers of a home.
        name = locks.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
        descriptor = os.open(folder / str(uid), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        locks.callback(os.close, descriptor)
        try:
            name.bind(f"\0trainyard-uid-{uid}")
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            claim = locks.enter_context(MachineClaim.lock(uid, home_id(folder)))
        except OSError as error:
            if error.errno not in (errno.EADDRINUSE, errno.EWOULDBLOCK):
                raise
            return None
        return RunnerUser(uid, folder / f"{uid}{GRANTS}", claim, locks.pop_all())


def end_processes(uid: int) -> bool:
    """Kill a user's processes; return whether all have ended."""
    deadline = time.monotonic() + KILL_TIMEOUT
    while pids := list(_processes(uid)):
        for pid in pids:
            _kill(pid, uid)
        if time.monotonic() > deadline:
            return False
        time.sleep(0.002)
    return True


def _kill(pid: int, uid: int) -> None:
    with contextlib.suppress(OSError):
        handle = os.pidfd_open(pid)
        try:
            # Again, since the pid may belong to another process by now; the handle cannot.
            if uid in _uids(str(pid)):
                signal.pidfd_send_signal(handle, signal.SIGKILL)
        finally:
            os.close(handle)


def _processes(uid: int) -> Iterator[int]:
    """Yield the pids of a user's processes that have not ended."""
    with os.scandir("/proc") as entries:
        for entry in entries:
            if entry.name.isdigit() and uid in _uids(entry.name):
                yield int(entry.name)


def _uids(pid: str) -> set[int]:
    """Return a process's real, effective and saved user ids; none if it has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return set()
    fields = {name: value for name, _, value in (line.partition(":") for line in lines)}
    if fields.get("State", "").strip()[:1] in ("Z", "X"):
        return set()
    return {int(uid) for uid in fields.get("Uid", "").split()[:3]}


def _is_account(uid: int) -> bool:
    try:
        pwd.getpwuid(uid)
    except KeyError:
        return False
    return True
