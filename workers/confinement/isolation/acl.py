"""Changes access control lists (POSIX ACLs) on folders and files, in the kernel's binary form.

A change reads all entries for a file and writes them again, so only one process at a time may do it: see
`access.exclusive`.
"""

import errno
import os
import stat
import struct
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

READ, WRITE, SEARCH = 4, 2, 1
ALL = READ | WRITE | SEARCH

_ACCESS, _DEFAULT = "system.posix_acl_access", "system.posix_acl_default"
_OWNER, _USER, _OWNING_GROUP, _GROUP, _MASK, _OTHERS = 0x01, 0x02, 0x04, 0x08, 0x10, 0x20
_NO_ID = 0xFFFFFFFF
_VERSION = struct.Struct("<I")
_ENTRY = struct.Struct("<HHI")


class Key(NamedTuple):
    """Who an entry is about: its kind, and a user or group id."""

    kind: int
    id: int = _NO_ID


Entries = dict[Key, int]


def user(uid: int) -> Key:
    """Return the subject for a user's entry."""
    return Key(_USER, uid)


def group(gid: int) -> Key:
    """Return the subject for a group's entry."""
    return Key(_GROUP, gid)


def grant(path: Path, subject: Key, rights: int) -> None:
    """Give a user or group rights on a file or folder that belongs to this service.

    Raises:
        OSError: `path` is a link, or its file system has no access control lists.
    """

    def change(entries: Entries) -> None:
        entries[subject] = rights

    _change(path, change)


def revoke(path: Path, subject: Key) -> None:
    """Take all rights that `grant` gave. A missing file is no error."""
    with suppress(FileNotFoundError):
        _change(path, lambda entries: entries.pop(subject, None))


def rights(path: Path) -> Mapping[Key, int]:
    """Return the entries on a file or folder."""
    with _open_no_follow(path) as descriptor:
        return _read(descriptor)


def inherit(path: Path, subjects: Mapping[Key, int]) -> None:
    """Have all files that are created below a folder from now on give these rights, beside earlier ones."""
    with _open_no_follow(path) as descriptor:
        entries = {Key(_OWNER): ALL, Key(_OWNING_GROUP): 0, Key(_OTHERS): 0}
        entries |= _inherited(descriptor) | dict(subjects)
        os.setxattr(descriptor, _DEFAULT, _encode(entries))


def inherits(path: Path, subjects: Mapping[Key, int]) -> bool:
    """Return whether `inherit` was called for a folder with these rights."""
    with _open_no_follow(path) as descriptor:
        return subjects.items() <= _inherited(descriptor).items()


def _inherited(descriptor: int) -> Entries:
    """Return the entries for users and groups that new files in a folder get."""
    if _DEFAULT not in os.listxattr(descriptor):
        return {}
    entries = _decode(os.getxattr(descriptor, _DEFAULT))
    return {key: granted for key, granted in entries.items() if key.kind in (_USER, _GROUP)}


def _change(path: Path, change: Callable[[Entries], object]) -> None:
    with _open_no_follow(path) as descriptor:
        entries = _read(descriptor)
        before = dict(entries)
        change(entries)
        if entries != before:
            os.setxattr(descriptor, _ACCESS, _encode(entries))


@contextmanager
def _open_no_follow(path: Path) -> Iterator[int]:
    # Without blocking: it might be a pipe.
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _read(descriptor: int) -> Entries:
    try:
        stored = os.getxattr(descriptor, _ACCESS)
    except OSError as error:
        if error.errno != errno.ENODATA:
            raise
        mode = stat.S_IMODE(os.fstat(descriptor).st_mode)
        return {Key(_OWNER): mode >> 6 & 7, Key(_OWNING_GROUP): mode >> 3 & 7, Key(_OTHERS): mode & 7}
    return _decode(stored)


def _decode(stored: bytes) -> Entries:
    entries = _ENTRY.iter_unpack(stored[_VERSION.size :])
    return {Key(kind, subject): granted for kind, granted, subject in entries if kind != _MASK}


def _encode(entries: Entries) -> bytes:
    named = [granted for key, granted in entries.items() if key.kind in (_USER, _GROUP)]
    complete = dict(entries)
    if named:
        # The mask limits all but the owner and others: it is their union, so it limits none.
        complete[Key(_MASK)] = 0
        for granted in [*named, entries[Key(_OWNING_GROUP)]]:
            complete[Key(_MASK)] |= granted
    # The kernel expects this order.
    return _VERSION.pack(2) + b"".join(
        _ENTRY.pack(key.kind, complete[key], key.id) for key in sorted(complete)
    )
