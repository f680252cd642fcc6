"""Calls of the Linux kernel that Python has no function for. Each raises OSError if the kernel refuses."""

import ctypes
import os
from pathlib import Path

CAP_SYS_ADMIN = 21
# CHOWN is not needed: files of runners are reached through access control lists.
CAPABILITIES = {"CAP_DAC_OVERRIDE": 1, "CAP_FOWNER": 3, "CAP_KILL": 5, "CAP_SETGID": 6, "CAP_SETUID": 7}
"""The capabilities that a service needs to give a process a user of its own, with their numbers."""

_CLONE_NEWNS = 0x00020000
_MS_NOSUID, _MS_NODEV, _MS_BIND, _MS_REC, _MS_PRIVATE = 0x2, 0x4, 0x1000, 0x4000, 1 << 18
_PR_SET_DUMPABLE, _PR_SET_NO_NEW_PRIVS, _PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL = 4, 38, 47, 4
_CAPABILITY_VERSION_3 = 0x20080522


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


def effective_capabilities() -> int:
    """Return the capabilities of this process as a bit mask; 0 where the kernel has none."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1], 16) for line in lines if line.startswith("CapEff:")), 0)


def unshare_mounts() -> None:
    """Give this process mounts of its own: later ones are visible to it and its children alone."""
    _check(_libc().unshare(_CLONE_NEWNS), "unshare")
    _check(_libc().mount(None, b"/", None, _MS_REC | _MS_PRIVATE, None), "mount private")


def mount_tmpfs(folder: str, *, options: str) -> None:
    """Mount an empty file system in memory."""
    flags = _MS_NOSUID | _MS_NODEV
    _check(_libc().mount(b"tmpfs", os.fsencode(folder), b"tmpfs", flags, options.encode()), folder)


def bind_mount(descriptor: int, folder: str) -> None:
    """Mount an open folder at another place, with everything mounted below it."""
    source = f"/proc/self/fd/{descriptor}".encode()
    _check(_libc().mount(source, os.fsencode(folder), None, _MS_BIND | _MS_REC, None), folder)


def drop_capabilities() -> None:
    """Give up all capabilities, also for programs that this process starts."""
    _check(_libc().prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "prctl(PR_SET_NO_NEW_PRIVS)")
    _check(_libc().prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0), "prctl(PR_CAP_AMBIENT)")
    # Two sets of three 32-bit words: effective, permitted and inheritable.
    nothing = (ctypes.c_uint32 * 6)()
    _check(_libc().capset(ctypes.byref(_Header(_CAPABILITY_VERSION_3, 0)), nothing), "capset")


def allow_own_proc() -> None:
    """Let this process read its own files in /proc, which the kernel denies after a change of user."""
    _check(_libc().prctl(_PR_SET_DUMPABLE, 1, 0, 0, 0), "prctl(PR_SET_DUMPABLE)")


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _check(status: int, call: str) -> None:
    if status != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{call}: {os.strerror(number)}")
