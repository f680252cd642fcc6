"""Calls of the Linux kernel that Python has no function for. Each raises OSError if the kernel refuses."""

import ctypes
import os
import signal

NEW_MOUNTS, NEW_CGROUP, NEW_UTS, NEW_IPC = 0x00020000, 0x02000000, 0x04000000, 0x08000000
NEW_USER, NEW_PIDS, NEW_NETWORK = 0x10000000, 0x20000000, 0x40000000
NAMESPACES = NEW_MOUNTS | NEW_CGROUP | NEW_UTS | NEW_IPC | NEW_USER | NEW_PIDS | NEW_NETWORK

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_NO_NEW_PRIVS, _PR_SET_CHILD_SUBREAPER = 1, 4, 38, 36
_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL, _CAPABILITY_VERSION_3 = 47, 4, 0x20080522

_libc = ctypes.CDLL(None, use_errno=True)


class _Capabilities(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


def check(status: int, call: str) -> int:
    """Return the status of a call of the C library; raise its error if it is negative."""
    if status < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{call}: {os.strerror(number)}")
    return status


def prctl(option: int, *arguments: int) -> None:
    """Call prctl(2)."""
    values = (ctypes.c_ulong(value) for value in (*arguments, 0, 0, 0, 0)[:4])
    check(_libc.prctl(option, *values), f"prctl({option})")


def syscall(number: int, *arguments: object) -> int:
    """Call the kernel by the number of a system call."""
    return int(_libc.syscall(ctypes.c_long(number), *arguments))


def die_with_parent(parent: int, signal_number: int = signal.SIGKILL) -> None:
    """Have the kernel send a signal to this process when its parent dies.

    Call it after a change of user, which removes the setting.

    Args:
        parent: the pid of the parent; 0 if it is in another PID namespace.
        signal_number: the signal.

    Raises:
        ProcessLookupError: the parent has died already.
    """
    prctl(_PR_SET_PDEATHSIG, signal_number)
    if os.getppid() != parent:
        raise ProcessLookupError("the process that started this one has ended")


def become_subreaper() -> None:
    """Make descendants whose parent ends children of this process."""
    prctl(_PR_SET_CHILD_SUBREAPER, 1)


def forbid_new_privileges() -> None:
    """Have programs that this process executes gain no privileges, such as by set-user-ID."""
    prctl(_PR_SET_NO_NEW_PRIVS, 1)


def drop_capabilities() -> None:
    """Give up all capabilities, also for programs that this process executes."""
    forbid_new_privileges()
    prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL)
    # Two sets of three 32-bit words: effective, permitted and inheritable.
    nothing = (ctypes.c_uint32 * 6)()
    header = _Capabilities(_CAPABILITY_VERSION_3, 0)
    check(_libc.capset(ctypes.byref(header), nothing), "capset")


def allow_own_proc() -> None:
    """Let this process read its own files in /proc, which the kernel denies after a change of user."""
    prctl(_PR_SET_DUMPABLE, 1)


def forbid_own_proc() -> None:
    """Close the files of this process in /proc, such as its memory, to others with the same user."""
    prctl(_PR_SET_DUMPABLE, 0)
