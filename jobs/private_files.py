"""Keeps folders and files private: no other user on the machine can read them or put files into them.

Only ids and permission bits are checked. The system administrator (root) reads everything.
"""

import contextlib
import logging
import os
import stat
from pathlib import Path

log = logging.getLogger(__name__)

ROOT = 0
"""The system administrator's user id."""
UMASK = 0o077
"""New files are 0600 and new folders 0700 unless a program asks for less."""
OF_OTHERS = 0o077
"""The permission bits for the group and for all other users."""
OF_STRANGERS = 0o007
"""The permission bits for users who are neither the owner nor in the file's group."""
OF_A_HOME = {"trainyard.sqlite3", "secret.key", "installation.id", "artifacts", "run", "log"}
"""A home has one of these files and folders, or none at all before its first start."""


class NotPrivate(Exception):
    """A file or folder belongs to another user, or other users can write to it."""


def restrict_new_files() -> None:
    """Let this process and its children create only files and folders that no other user can access."""
    os.umask(UMASK)


def make_home_private(root: Path) -> None:
    """Remove other users' permissions from the home and everything in it. A missing home is created.

    Raises:
        NotPrivate: the home belongs to another user, or has content that is not Trainyard's.
    """
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    _require_not_for_all(root)
    _require_home(root)
    make_folder_private(root)
    entries = list(os.scandir(root))
    if OF_A_HOME.isdisjoint(entry.name for entry in entries):
        return  # it is only about to become a home: its files are of other programs
    # No deeper: other users cannot enter the folders.
    for entry in entries:
        if _close(Path(entry.path)):
            log.warning("Other users had permissions for %s: they were removed", entry.path)


def make_folder_private(root: Path) -> None:
    """Remove other users' permissions from a folder. A missing one is ignored.

    Raises:
        NotPrivate: the folder belongs to another user, or is for all users.
    """
    # The store creates it: a backup is restored into a home without any artifacts.
    if not root.exists():
        return
    root = root.resolve()
    _require_owner(root, root.stat())
    _require_not_for_all(root)
    if _close(root):
        log.warning("Other users had permissions for %s: they were removed", root)


def make_file_private(path: Path) -> None:
    """Remove other users' permissions from a file. A missing one is ignored.

    Files that belong to root are left as they are: a container's secrets belong to root.

    Raises:
        NotPrivate: it belongs to another user, who could replace its content.
    """
    try:
        facts = path.stat()
    except FileNotFoundError:
        return
    if facts.st_uid == ROOT and os.geteuid() != ROOT:
        return
    _require_owner(path, facts)
    if _close(path.resolve()):
        log.warning("Other users had permissions for %s: they were removed", path)


def create_private_folder(path: Path) -> Path:
    """Create a folder for sockets in a folder that all users can write to, such as /tmp; return its path.

    A folder that exists is used only if no other user can have put anything into it.

    Raises:
        NotPrivate: it is a link or no folder, belongs to another user, or others have permissions for it.
    """
    with contextlib.suppress(FileExistsError):
        path.mkdir(mode=0o700)
    require_private_folder(path)
    return path


def require_private_folder(path: Path) -> None:
    """Refuse a folder to which other users have or had access; a missing one is accepted.

    Raises:
        NotPrivate: it is a link or no folder, belongs to another user, or others have permissions for it.
    """
    try:
        facts = path.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISDIR(facts.st_mode):
        raise NotPrivate(f"{path} must be a folder, and no link to one. Delete it and start again.")
    _require_owner(path, facts)
    if facts.st_mode & OF_OTHERS:
        raise NotPrivate(f"Other users have access to {path}. Delete it and start again.")


def _require_not_for_all(folder: Path) -> None:
    """Refuse a folder such as /tmp, in which every user has files: closing it would stop other programs."""
    if folder.parent == folder or folder.stat().st_mode & stat.S_ISVTX:
        raise NotPrivate(f"{folder} is a folder for all users: name a folder of its own below it.")


def _require_home(root: Path) -> None:
    """Refuse an open folder with files of others, which `make_home_private` would take from their users."""
    if not root.stat().st_mode & OF_OTHERS:
        return
    names = {entry.name for entry in os.scandir(root)}
    if names and names.isdisjoint(OF_A_HOME):
        raise NotPrivate(
            f"{root} is no home of Trainyard: it has other content, such as {min(names)!r}, to which other "
            f"users have access. Name an empty folder, or take their access away with: chmod 700 {root}"
        )


def _close(path: Path) -> bool:
    """Remove other users' permissions from a file or folder. Return whether there were any."""
    try:
        facts = path.lstat()
        if stat.S_ISLNK(facts.st_mode) or facts.st_uid != os.geteuid():
            return False
        unwanted = OF_STRANGERS if _has_access_list(path) else OF_OTHERS
        if not facts.st_mode & unwanted:
            return False
        path.chmod(facts.st_mode & 0o770 & ~unwanted)
    except FileNotFoundError:  # a process of a running installation has deleted it
        return False
    return True


def _has_access_list(path: Path) -> bool:
    """Return whether a file names users or groups beside its own, as folders that runners enter do.

    Its permission bits of the group then limit what these may do: taking them would lock runners out.
    """
    return hasattr(os, "listxattr") and "system.posix_acl_access" in os.listxattr(path, follow_symlinks=False)


def _require_owner(path: Path, facts: os.stat_result) -> None:
    if facts.st_uid != os.geteuid():
        raise NotPrivate(
            f"{path} belongs to the user with the id {facts.st_uid}; this process runs as {os.geteuid()}. "
            "Run as that user, or choose another folder."
        )
