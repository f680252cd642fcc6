"""Calls of the Linux kernel that Python has no function for. Each raises OSError if the kernel refuses."""

import ctypes
import os
import signal
from pathlib import Path

NEW_MOUNTS, NEW_CGROUP, NEW_UTS, NEW_IPC = 0x00020000, 0x02000000, 0x04000000, 0x08000000
NEW_USER, NEW_PIDS, NEW_NETWORK = 0x10000000, 0x20000000, 0x40000000
NAMESPACES = NEW_MOUNTS | NEW_CGROUP | NEW_UTS | NEW_IPC | NEW_USER | NEW_PIDS | NEW_NETWORK

READ_ONLY, NO_SET_USER_ID, NO_DEVICES = 1, 2, 4
"""Attributes of mounts, see mount_setattr(2)."""

# Newer than the tables of system calls, so it has one number on all machines.
_MOUNT_SETATTR = 442
_AT_RECURSIVE, _MNT_DETACH = 0x8000, 2
_MS_REC, _MS_PRIVATE = 0x4000, 1 << 18
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_NO_NEW_PRIVS, _PR_SET_CHILD_SUBREAPER = 1, 4, 38, 36
_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL, _CAPABILITY_VERSION_3 = 47, 4, 0x20080522
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 1

_libc = ctypes.CDLL(None, use_errno=True)


class _MountAttributes(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_uint64) for name in ("set", "clear", "propagation", "user_namespace"))


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


def unshare(flags: int) -> None:
    """Give this process namespaces of its own; a PID namespace begins with its next child."""
    check(_libc.unshare(flags), "unshare")
    if flags & NEW_MOUNTS:
        mount(None, "/", None, _MS_REC | _MS_PRIVATE)


def mount(source: str | None, target: str, kind: str | None, flags: int = 0, options: str = "") -> None:
    """Call mount(2)."""
    encoded = (os.fsencode(text) if text else None for text in (source, target, kind))
    check(_libc.mount(*encoded, ctypes.c_ulong(flags), options.encode() or None), f"mount {target}")


def set_mount_attributes(target: str, attributes: int, *, recursive: bool = True) -> None:
    """Add attributes to a mount, and to those below it (Linux 5.12)."""
    wanted = _MountAttributes(attributes, 0, 0, 0)
    flags = ctypes.c_uint(_AT_RECURSIVE if recursive else 0)
    size = ctypes.c_size_t(ctypes.sizeof(wanted))
    status = syscall(_MOUNT_SETATTR, -100, os.fsencode(target), flags, ctypes.byref(wanted), size)
    check(status, f"mount_setattr {target}")


def change_root(folder: str) -> None:
    """Make a mount the root of this process, and detach the present root."""
    os.chdir(folder)
    # The old root is mounted over the new one, which is then its only parent.
    check(syscall(_pivot_root(), b".", b"."), "pivot_root")
    check(_libc.umount2(b".", _MNT_DETACH), "umount2")
    os.chdir("/")


def _pivot_root() -> int:
    return {"x86_64": 155, "aarch64": 41}[os.uname().machine]


def enable_loopback() -> None:
    """Enable the loopback interface of this network namespace."""
    import fcntl
    import socket
    import struct

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        present = fcntl.ioctl(any_socket, _SIOCGIFFLAGS, struct.pack("16sH14x", b"lo", 0))
        flags = struct.unpack("16sH14x", present)[1]
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", flags | _IFF_UP))


def map_own_user(uid: int, gid: int) -> None:
    """Map only one user and group into this process' new user namespace."""
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
    Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")
