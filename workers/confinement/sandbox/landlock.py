"""Restricts a process's files, connections and signals by Landlock (Linux 5.13)."""

import ctypes
import os
import stat
import sys
from collections.abc import Iterable
from contextlib import ExitStack, suppress

from workers.system import kernel

_CREATE, _ADD, _RESTRICT = 444, 445, 446
_ASK_VERSION = 1
_BELOW_PATH, _PORT = 1, 2

_EXECUTE, _WRITE, _READ, _LIST = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_CHANGES_OF_FOLDERS = sum(1 << bit for bit in range(4, 13))
_MAKE_BLOCK_DEVICES = 1 << 11
_REFER, _TRUNCATE, _IOCTL_OF_DEVICES = 1 << 13, 1 << 14, 1 << 15
_OF_FILES = _EXECUTE | _WRITE | _READ | _TRUNCATE | _IOCTL_OF_DEVICES
_BIND, _CONNECT = 1 << 0, 1 << 1
_ABSTRACT_SOCKETS, _SIGNALS = 1, 2

READING = _EXECUTE | _READ | _LIST
ALL = READING | _WRITE | _CHANGES_OF_FOLDERS | _REFER | _TRUNCATE | _IOCTL_OF_DEVICES
DEVICE = _READ | _WRITE
ACCELERATOR = DEVICE | _IOCTL_OF_DEVICES
"""Drivers of GPUs get their orders as ioctl calls, which Landlock restricts from version 5 on."""
WRITING = READING | _WRITE
"""Reads everything below a folder, and writes into files that exist."""


class _Rules(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scopes", ctypes.c_uint64))


class _FileRule(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("folder", ctypes.c_int32))


class _PortRule(ctypes.Structure):
    _fields_ = (("allowed", ctypes.c_uint64), ("port", ctypes.c_uint64))


def version() -> int:
    """Return this kernel's Landlock version; 0 if it has none."""
    if sys.platform != "linux":
        return 0
    return max(0, kernel.syscall(_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint32(_ASK_VERSION)))


def rights(landlock: int) -> int:
    """Return all rights on files that a Landlock version knows."""
    newer = {2: _REFER, 3: _TRUNCATE, 5: _IOCTL_OF_DEVICES}
    return ALL & ~sum(right for since, right in newer.items() if landlock < since)


def create(
    files: Iterable[tuple[str, int]] | None, *, ports: Iterable[int] | None = None, landlock: int = 0
) -> int | None:
    """Return an open set of rules; None if there is nothing to restrict.

    Args:
        files: paths and the rights on everything below them; None leaves files unrestricted.
        ports: the only TCP ports to connect to, and none can be bound; None leaves TCP unrestricted.
        landlock: the version to use; by default the kernel's.

    Raises:
        OSError: the kernel refused.
    """
    landlock = landlock or version()
    rules = _Rules(
        rights(landlock) if files is not None else 0,
        _BIND | _CONNECT if ports is not None and landlock >= 4 else 0,
        _ABSTRACT_SOCKETS | _SIGNALS if landlock >= 6 else 0,
    )
    return _create(rules, files or (), ports or (), landlock)


def create_domain(landlock: int) -> int | None:
    """Return an open set of rules that restrict no files; None if this Landlock version has none.

    A process with any rules cannot reach the memory of a process that lacks them.
    """
    if landlock >= 6:
        return create(None, landlock=landlock)
    # Something must be restricted. Before version 2, no file could be moved to another folder.
    rules = _Rules(_REFER | _MAKE_BLOCK_DEVICES if landlock >= 2 else 0, 0, 0)
    return _create(rules, [("/", _REFER)], (), landlock)


def _create(
    rules: _Rules, files: Iterable[tuple[str, int]], ports: Iterable[int], landlock: int
) -> int | None:
    if not (rules.files or rules.network or rules.scopes):
        return None
    size = 8 if landlock < 4 else 16 if landlock < 6 else 24
    created = kernel.syscall(_CREATE, ctypes.byref(rules), ctypes.c_size_t(size), ctypes.c_uint32(0))
    ruleset = kernel.check(created, "landlock_create_ruleset")
    with ExitStack() as undo:
        undo.callback(os.close, ruleset)
        for path, allowed in files:
            # A system does not have all folders.
            with suppress(FileNotFoundError):
                _add_path(ruleset, path, allowed & rules.files)
        if rules.network:
            for port in ports:
                _add(ruleset, _PORT, _PortRule(_CONNECT, port))
        undo.pop_all()
    return ruleset


def restrict(ruleset: int) -> None:
    """Restrict this process and its children, for good. It must not gain privileges any more.

    Raises:
        OSError: the kernel refused.
    """
    restricted = kernel.syscall(_RESTRICT, ctypes.c_int(ruleset), ctypes.c_uint32(0))
    kernel.check(restricted, "landlock_restrict_self")
    os.close(ruleset)


def _add_path(ruleset: int, path: str, allowed: int) -> None:
    descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
            allowed &= _OF_FILES
        _add(ruleset, _BELOW_PATH, _FileRule(allowed, descriptor))
    finally:
        os.close(descriptor)


def _add(ruleset: int, kind: int, rule: ctypes.Structure) -> None:
    added = kernel.syscall(
        _ADD, ctypes.c_int(ruleset), ctypes.c_int(kind), ctypes.byref(rule), ctypes.c_uint32(0)
    )
    kernel.check(added, "landlock_add_rule")
