"""Gives confined processes access to folders and files, and withdraws it.

A folder that a process may use belongs to the service, and its access control list names the user of that
process. Below it everything is open to the group of all runners: a process that cannot enter the folder
cannot reach the files inside. So nothing changes its owner, and several runners of a job can share its
checkpoints.
"""

import contextlib
import fcntl
import json
import os
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from jobs.messages.fork import Confinement
from workers.confinement.isolation import acl
from workers.confinement.isolation.users import GRANTS, RunnerUser, RunnerUsers, lock
from workers.confinement.isolation.view import View

HOME, INPUTS = "home", "inputs"


@dataclass
class RunnerAccess:
    """The files for one runner.

    Attributes:
        folder: its folder, which belongs to the service and has its home and its inputs.
        user: its user.
        group: the group of all runners.
    """

    folder: Path
    user: RunnerUser
    group: int
    _granted: set[Path] = field(default_factory=set)

    @property
    def home(self) -> Path:
        """The runner's working folder, in which it may write."""
        return self.folder / HOME

    def prepare(self) -> None:
        """Create the runner's home and its input folder.

        Raises:
            OSError: see `grant`.
        """
        self.grant(self.folder, write=False)
        self.grant(self.home)
        self.grant(self.folder / INPUTS, write=False)

    def grant(self, folder: Path, *, write: bool = True) -> None:
        """Let the runner use a folder, which is created if it is missing.

        Raises:
            OSError: the file system has no access control lists.
        """
        self._create(folder)
        if folder not in self._granted:
            # Listed before it is granted: after a crash, every grant can be withdrawn by the list.
            _write_list(self.user.grants, {*self._granted, folder})
            self._granted.add(folder)
        with exclusive(self.user.grants.parent):
            if write:
                _share_contents(folder, self.group)
            acl.grant(folder, acl.user(self.user.uid), acl.ALL if write else acl.READ | acl.SEARCH)

    def _create(self, folder: Path) -> None:
        # The operator may have deleted a whole cache of a running installation.
        with exclusive(self.user.grants.parent):
            missing = [parent for parent in folder.parents if not parent.exists()]
            for parent in reversed(missing):
                parent.mkdir(mode=0o700)
                acl.grant(parent, acl.group(self.group), acl.SEARCH)
            folder.mkdir(mode=0o700, exist_ok=True)

    def revoke(self, folder: Path) -> None:
        """Withdraw the access to a folder.

        Raises:
            OSError: the access could not be withdrawn.
        """
        with exclusive(self.user.grants.parent):
            acl.revoke(folder, acl.user(self.user.uid))
        self._granted.discard(folder)
        # A list that names too many folders is harmless: on a full disk it stays as it is.
        with contextlib.suppress(OSError):
            _write_list(self.user.grants, self._granted)

    def read_only(self, file: Path) -> Path:
        """Return a link to a file in the store in the input folder; a copy on another file system."""
        link = self.folder / INPUTS / file.name
        if not link.exists():
            # The store keeps its own access: no runner can enter its folders.
            try:
                with exclusive(self.user.grants.parent):
                    acl.grant(file, acl.group(self.group), acl.READ)
                os.link(file, link, follow_symlinks=False)
            except OSError:
                link.unlink(missing_ok=True)
                shutil.copyfile(file, link)
                acl.grant(link, acl.group(self.group), acl.READ)
        return link

    def close(self) -> None:
        """Kill the rest of the runner's processes, withdraw all access, and delete its folder."""
        ended = self.user.end_processes()
        _withdraw(self.user, self._granted)
        shutil.rmtree(self.folder, ignore_errors=True)
        # Otherwise the id stays in use until this process ends.
        if ended:
            self.user.release()


@dataclass(frozen=True)
class Isolation:
    """Gives each runner its own user."""

    users: RunnerUsers
    view: View
    parents: tuple[Path, ...] = ()
    """Folders of the service that runners must enter to reach their own."""

    def open_parents(self) -> None:
        """Let the runners' group enter these folders; it cannot list them.

        Raises:
            OSError: the file system has no access control lists.
        """
        for folder in self.parents:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with exclusive(self.users.folder):
                acl.grant(folder, acl.group(self.users.group), acl.SEARCH)

    def create_access(self, folder: Path) -> RunnerAccess:
        """Return the access for a new runner whose files are in `folder`.

        Raises:
            OSError: no user id is free, or the folder cannot be shared.
        """
        user = self.users.claim()
        # The worker of an earlier runner with this id may have died.
        left = _withdraw(user, _read_list(user.grants))
        access = RunnerAccess(folder, user, self.users.group, set(left))
        try:
            if left:
                raise OSError(f"the access of an earlier runner to {left[0]} cannot be withdrawn")
            access.prepare()
        except OSError:
            access.close()
            raise
        return access

    def confinement(self, access: RunnerAccess) -> Confinement:
        """Return the confinement for a runner's process."""
        hidden, visible = self.view
        runner_folder = (str(access.folder.resolve()),) if hidden else ()
        return Confinement(
            uid=access.user.uid, group=access.group, hidden=hidden, visible=(*visible, *runner_folder)
        )


def clean_up(locks: Path) -> None:
    """Kill remaining processes of runners whose workers died, and withdraw their access.

    Args:
        locks: see `RunnerUsers`.
    """
    for file in locks.glob(f"*{GRANTS}"):
        uid = file.name.removesuffix(GRANTS)
        # If another runner has the id by now, its worker has withdrawn the access before.
        if uid.isdecimal() and (user := lock(locks, int(uid))) is not None:
            user.end_left()
            _withdraw(user, _read_list(user.grants))
            user.release()


def _withdraw(user: RunnerUser, folders: Iterable[Path]) -> list[Path]:
    """Withdraw a user's access to folders; return the folders where that fails. They stay listed."""
    left = []
    for folder in folders:
        try:
            with exclusive(user.grants.parent):
                acl.revoke(folder, acl.user(user.uid))
        except OSError:
            left.append(folder)
    with contextlib.suppress(OSError):
        if left:
            _write_list(user.grants, left)
        else:
            user.grants.unlink(missing_ok=True)
    return left


def _write_list(file: Path, folders: Iterable[Path]) -> None:
    # Renamed, so that a crash leaves a complete list.
    unfinished = file.with_name(f".{file.name}")
    unfinished.write_text(json.dumps(sorted(map(str, folders))))
    unfinished.replace(file)


def _read_list(file: Path) -> list[Path]:
    try:
        return [Path(folder) for folder in json.loads(file.read_text())]
    # Without a file, the last holder of the id has withdrawn all access. A power failure may leave it empty.
    except (FileNotFoundError, ValueError):
        return []


@contextlib.contextmanager
def exclusive(locks: Path) -> Iterator[None]:
    """Keep the home's other workers from changing access lists until the block ends.

    Args:
        locks: see `RunnerUsers`. A lock of the changed file itself could be held for ever by a runner that
            may read it.
    """
    locks.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(locks / "access-lists", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _share_contents(folder: Path, group: int) -> None:
    """Open everything inside a folder to the runners' group and to this service."""
    if acl.inherits(folder):
        return
    subjects = {acl.group(group): acl.ALL, acl.user(os.geteuid()): acl.ALL}
    # The present contents were written before runners had users of their own.
    for path, is_folder in _contents(folder):
        with contextlib.suppress(OSError):
            for subject, rights in subjects.items():
                acl.grant(path, subject, rights)
            if is_folder:
                acl.inherit(path, subjects)
    acl.inherit(folder, subjects)


def _contents(folder: Path) -> Iterable[tuple[Path, bool]]:
    for name, folders, files in os.walk(folder):
        yield from ((Path(name) / entry, True) for entry in folders)
        yield from ((Path(name) / entry, False) for entry in files)
