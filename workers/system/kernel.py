"""Linux kernel calls that Python has no function for. Each raises OSError if the kernel refuses.

The process that confines itself imports this module for each run, so it needs few standard libraries.
"""

import ctypes
import os
import sys

NEW_MOUNTS, NEW_CGROUP, NEW_UTS, NEW_IPC = 0x00020000, 0x02000000, 0x04000000, 0x08000000
NEW_USER, NEW_PIDS, NEW_NETWORK = 0x10000000, 0x20000000, 0x40000000
NAMESPACES = NEW_MOUNTS | NEW_CGROUP | NEW_UTS | NEW_IPC | NEW_USER | NEW_PIDS | NEW_NETWORK

CAP_SYS_ADMIN = 21
# CHOWN is not needed: files of runners are reached through access control lists.
CAPABILITIES = {"CAP_DAC_OVERRIDE": 1, "CAP_FOWNER": 3, "CAP_KILL": 5, "CAP_SETGID": 6, "CAP_SETUID": 7}
"""The capabilities that a service needs to give a process a user of its own, with their numbers."""

_MS_NOSUID, _MS_NODEV, _MS_BIND, _MS_REC, _MS_PRIVATE = 0x2, 0x4, 0x1000, 0x4000, 1 << 18
_PR_SET_DUMPABLE, _PR_SET_NAME, _PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS = 4, 15, 36, 38
_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL, _CAPABILITY_VERSION_3 = 47, 4, 0x20080522

_libc = ctypes.CDLL(None, use_errno=True)


class _CapabilityHeader(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


def check(status: int, call: str) -> int:
    """Return a C library call's status; raise its error if it is negative."""
    if status < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{call}: {os.strerror(number)}")
    return status


def prctl(option: int, *arguments: int) -> None:
    """Call prctl(2)."""
    values = (ctypes.c_ulong(value) for value in (*arguments, 0, 0, 0, 0)[:4])
    check(_libc.prctl(option, *values), f"prctl({option})")


def syscall(number: int, *arguments: object) -> int:
    """Call the kernel by a system call's number."""
    return int(_libc.syscall(ctypes.c_long(number), *arguments))


def set_process_name(name: str) -> None:
    """Set the name shown by `ps` and `top`, at most 15 characters. A fork has its parent's command line."""
    if sys.platform == "linux":
        buffer = ctypes.create_string_buffer(name.encode())
        prctl(_PR_SET_NAME, ctypes.addressof(buffer))


def become_subreaper() -> None:
    """Make descendants whose parent ends children of this process."""
    prctl(_PR_SET_CHILD_SUBREAPER, 1)


def effective_capabilities() -> int:
    """Return this process's capabilities as a bit mask; 0 where the kernel has none."""
    try:
        with open("/proc/self/status") as file:  # noqa: PTH123  pathlib is not imported
            lines = file.read().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1], 16) for line in lines if line.startswith("CapEff:")), 0)


def forbid_new_privileges() -> None:
    """Have programs that this process executes gain no privileges, such as by set-user-ID."""
    prctl(_PR_SET_NO_NEW_PRIVS, 1)


def drop_capabilities() -> None:
    """Give up all capabilities, also for programs that this process executes."""
    forbid_new_privileges()
    prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL)
    # Two sets of three 32-bit words: effective, permitted and inheritable.
    nothing = (ctypes.c_uint32 * 6)()
    header = _CapabilityHeader(_CAPABILITY_VERSION_3, 0)
    check(_libc.capset(ctypes.byref(header), nothing), "capset")


def allow_own_proc() -> None:
    """Let this process read its own files in /proc, which the kernel denies after its user has changed."""
    prctl(_PR_SET_DUMPABLE, 1)


def forbid_own_proc() -> None:
    """Close this process's files in /proc, such as its memory, to others with the same user."""
    prctl(_PR_SET_DUMPABLE, 0)


def unshare_mounts() -> None:
    """Give this process its own mounts: later ones are visible to it and its children alone."""
    check(_libc.unshare(NEW_MOUNTS), "unshare")
    check(_libc.mount(None, b"/", None, _MS_REC | _MS_PRIVATE, None), "mount private")


def mount_tmpfs(folder: str, *, options: str) -> None:
    """Mount an empty file system in memory."""
    flags = _MS_NOSUID | _MS_NODEV
    check(_libc.mount(b"tmpfs", os.fsencode(folder), b"tmpfs", flags, options.encode()), folder)


def bind_mount(descriptor: int, folder: str) -> None:
    """Mount an open folder at another place, with everything mounted below it."""
    source = f"/proc/self/fd/{descriptor}".encode()
    check(_libc.mount(source, os.fsencode(folder), None, _MS_BIND | _MS_REC, None), folder)
