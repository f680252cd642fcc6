"""Gives confined processes access to folders and files, and withdraws it.

A folder that a process may use belongs to the service, and its access control list names the user of that
process. Below it everything is open to the group of all runners: a process that cannot enter the folder
cannot reach the files inside. So nothing changes its owner, and several runners of a job can share its
checkpoints.
"""

import contextlib
import json
import os
import shutil
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from jobs.contracts.fork import Confinement
from workers.isolation import acl
from workers.isolation.users import RunnerUser, RunnerUsers, lock
from workers.isolation.view import View

GRANTS = "grants.json"
"""The file with the folders that a runner may use, so that access can be withdrawn after a crash."""
HOME, INPUTS = "home", "inputs"


@dataclass
class RunnerAccess:
    """The files of one runner. Its folder belongs to the service, and has its home and its inputs."""

    folder: Path
    user: RunnerUser
    group: int
    _granted: set[Path] = field(default_factory=set)

    @property
    def home(self) -> Path:
        """The working folder of the runner, in which it may write."""
        return self.folder / HOME

    def prepare(self) -> None:
        """Create the runner's home and the folder of its inputs.

        Raises:
            OSError: see `admit`.
        """
        self.admit(self.folder, write=False)
        self.admit(self.home)
        self.admit(self.folder / INPUTS, write=False)

    def admit(self, folder: Path, *, write: bool = True) -> None:
        """Let the runner use a folder, which is created if it is missing.

        Raises:
            OSError: the file system has no access control lists.
        """
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if folder not in self._granted:
            # Before it is granted, so that a crash leaves no grant behind that is not listed.
            self._granted.add(folder)
            self._save()
        if write:
            _share_contents(folder, self.group)
        acl.grant(folder, acl.user(self.user.uid), acl.ALL if write else acl.READ | acl.SEARCH)

    def expel(self, folder: Path) -> None:
        """Withdraw the access to a folder."""
        acl.revoke(folder, acl.user(self.user.uid))
        self._granted.discard(folder)
        self._save()

    def read_only(self, file: Path) -> Path:
        """Return a link to a file of the store in the folder of inputs; a copy on another file system."""
        link = self.folder / INPUTS / file.name
        if not link.exists():
            # The store keeps its own access: no runner can enter its folders.
            try:
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
        _revoke(self._granted, self.user.uid)
        shutil.rmtree(self.folder, ignore_errors=True)
        # Otherwise the id stays in use until this process ends.
        if ended:
            self.user.release()

    def _save(self) -> None:
        body = {"uid": self.user.uid, "folders": [str(folder) for folder in sorted(self._granted)]}
        # Renamed, so that a crash leaves a complete list.
        unfinished = self.folder / f".{GRANTS}"
        unfinished.write_text(json.dumps(body))
        unfinished.replace(self.folder / GRANTS)


@dataclass(frozen=True)
class Isolation:
    """Gives each runner a user of its own."""

    users: RunnerUsers
    view: View
    entered: tuple[Path, ...] = ()
    """Folders of the service that runners must enter to reach their own."""

    def open_ways(self) -> None:
        """Let the group of runners enter these folders; it cannot list them.

        Raises:
            OSError: the file system has no access control lists.
        """
        for folder in self.entered:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            acl.grant(folder, acl.group(self.users.group), acl.SEARCH)

    def admit(self, folder: Path) -> RunnerAccess:
        """Return the access of a new runner whose files are in `folder`.

        Raises:
            OSError: no user id is free, or the folder cannot be shared.
        """
        access = RunnerAccess(folder, self.users.claim(), self.users.group)
        try:
            access.prepare()
        except OSError:
            access.close()
            raise
        return access

    def confinement(self, access: RunnerAccess) -> Confinement:
        """Return the confinement of a runner's process."""
        hidden, visible = self.view
        own = (str(access.folder.resolve()),) if hidden else ()
        return Confinement(uid=access.user.uid, group=access.group, hidden=hidden, visible=(*visible, *own))


def clean_up(folder: Path, locks: Path) -> None:
    """Kill the remaining processes of a runner whose worker died, and withdraw its access.

    Args:
        folder: of the runner.
        locks: see `RunnerUsers`.
    """
    try:
        saved = json.loads((folder / GRANTS).read_text())
        uid, folders = int(saved["uid"]), [Path(each) for each in saved["folders"]]
    # It had no user of its own.
    except (OSError, ValueError, KeyError, TypeError):
        return
    # If another runner has the id by now, its worker has killed these processes.
    if (user := lock(locks, uid)) is not None:
        user.end_processes()
        _revoke(folders, uid)
        user.release()


def _revoke(folders: Iterable[Path], uid: int) -> None:
    for folder in folders:
        # A deleted folder gives access to nothing.
        with contextlib.suppress(OSError):
            acl.revoke(folder, acl.user(uid))


def _share_contents(folder: Path, group: int) -> None:
    """Open everything inside a folder to the group of runners and to this service."""
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
        yield from ((Path(name) / each, True) for each in folders)
        yield from ((Path(name) / each, False) for each in files)
