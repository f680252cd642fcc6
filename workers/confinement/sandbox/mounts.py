"""Builds the root folder of a sandbox of mounts, and makes it the root of this process."""

import os
import stat
from collections.abc import Iterable
from pathlib import Path

from workers.confinement.sandbox import kernel
from workers.confinement.sandbox.plan import Mount

_NO_DEVICES, _NO_SET_USER_ID, _NO_PROGRAMS = 4, 2, 8
_SAFE = kernel.NO_SET_USER_ID | kernel.NO_DEVICES
_DEVICE_LINKS = {
    "fd": "/proc/self/fd",
    "stdin": "/proc/self/fd/0",
    "stdout": "/proc/self/fd/1",
    "stderr": "/proc/self/fd/2",
}


def enter(mounts: Iterable[Mount], base: str, shared_memory: int) -> None:
    """Replace the root of this process, which has mounts of its own.

    Args:
        mounts: the view, the outer folders first.
        base: a folder of the present root.
        shared_memory: bytes in the file system of /dev/shm.

    Raises:
        OSError: the kernel refused, or a source does not exist.
    """
    os.umask(0o022)
    os.chdir("/")
    # All are opened first, since the base hides the files below it.
    opened = [(each, _open(each)) for each in mounts]
    kernel.mount("tmpfs", base, "tmpfs", _NO_SET_USER_ID | _NO_DEVICES, "mode=0755,size=16m")
    for each, descriptor in opened:
        _add(base + each.target, each, descriptor)
    _add_proc(f"{base}/proc")
    _complete_devices(f"{base}/dev", shared_memory)
    kernel.change_root(base)
    kernel.set_mount_attributes("/", kernel.READ_ONLY, recursive=False)


def _open(mount: Mount) -> int | None:
    return None if mount.kind == "link" else os.open(mount.source, os.O_PATH | os.O_CLOEXEC)


def _add(path: str, mount: Mount, descriptor: int | None) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    if descriptor is None:
        if not os.path.lexists(path):
            Path(path).symlink_to(mount.source)
        return
    if stat.S_ISDIR(os.fstat(descriptor).st_mode):
        Path(path).mkdir(exist_ok=True)
    elif not Path(path).exists():
        Path(path).touch()
    bind_recursively = 0x1000 | 0x4000
    kernel.mount(f"/proc/self/fd/{descriptor}", path, None, bind_recursively)
    os.close(descriptor)
    attributes = {"read": _SAFE | kernel.READ_ONLY, "write": _SAFE, "device": kernel.NO_SET_USER_ID}
    kernel.set_mount_attributes(path, attributes[mount.kind])


def _add_proc(path: str) -> None:
    Path(path).mkdir(exist_ok=True)
    kernel.mount("proc", path, "proc", _NO_SET_USER_ID | _NO_DEVICES | _NO_PROGRAMS)


def _complete_devices(folder: str, shared_memory: int) -> None:
    for name, target in _DEVICE_LINKS.items():
        Path(folder, name).symlink_to(target)
    shared = Path(folder, "shm")
    shared.mkdir()
    options = f"mode=1777,size={shared_memory}"
    kernel.mount("tmpfs", str(shared), "tmpfs", _NO_SET_USER_ID | _NO_DEVICES, options)
