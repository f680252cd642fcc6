"""Decides which files and folders on the machine a sandbox sees."""

import os
import site
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from workers.confinement.sandbox import landlock
from workers.confinement.sandbox.plan import Kind, Mount

CODE_ROOT = Path(__file__).resolve().parents[3]
PACKAGES = ("jobs", "transport", "workers")
"""The packages of this program that a run needs. Its folder may have others beside them, such as a home."""
SYSTEM = (
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64",
    "/sys/devices/system/cpu", "/sys/devices/system/node",
    *(f"/etc/{name}" for name in (
        "alternatives", "ca-certificates", "fonts", "gai.conf", "group", "host.conf", "hosts", "ld.so.cache",
        "ld.so.conf", "ld.so.conf.d", "localtime", "mime.types", "nsswitch.conf", "passwd", "protocols",
        "resolv.conf", "services", "timezone",
        # The name of the distribution, without which some programs end with an error.
        "debian_version", "lsb-release", "os-release", "redhat-release", "system-release",
        # Certificates, but not the private keys beside them.
        "crypto-policies", "pki/ca-trust", "pki/tls/cert.pem", "pki/tls/certs", "pki/tls/openssl.cnf",
        "ssl/cert.pem", "ssl/certs", "ssl/openssl.cnf",
    )),
)  # fmt: skip
"""Files of the system that programs read. Not all of /etc: it may have passwords of services."""
DEVICES = tuple(f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom"))
TEMPORARY = ("/tmp", "/var/tmp")  # noqa: S108  the run has its own folder there
_PROC = "/proc"


def python_folders() -> Iterator[Path]:
    """Yield the folders with Python, its packages and this program."""
    # Not all of sys.path: it may have the working folder.
    names = {sys.prefix, sys.base_prefix, *site.getsitepackages()}
    yield from (Path(name) for name in sorted(names) if Path(name).is_dir())
    yield from (CODE_ROOT / name for name in PACKAGES)


def mounts(
    readable: Iterable[str], writable: Iterable[str], temporary: str, devices: Iterable[str] = ()
) -> list[Mount]:
    """Return the view for a sandbox that has its own root, the outer folders first.

    Raises:
        FileNotFoundError: a requested file or folder does not exist.
    """
    by_target: dict[str, Mount] = {}
    for path in (*SYSTEM, *map(str, python_folders())):
        if os.path.lexists(path) and Path(path).exists():
            by_target |= _mounts_of_path("read", path)
    for kind, paths in (("read", readable), ("write", writable)):
        for path in paths:
            by_target |= _mounts_of_path(kind, path)  # type: ignore[arg-type]
    for path in TEMPORARY:
        by_target[path] = Mount("write", path, temporary)
    for path in DEVICES:
        if Path(path).exists():
            by_target[path] = Mount("device", path, path)
    for path in devices:
        by_target[path] = Mount("device", path, path)
    links = {mount.target for mount in by_target.values() if mount.kind == "link"}
    # A path below a link leads to its real one, which is mounted. Nothing can be mounted over the link.
    visible = [
        mount for mount in by_target.values() if links.isdisjoint(map(str, Path(mount.target).parents))
    ]
    return sorted(visible, key=lambda mount: (len(Path(mount.target).parts), mount.kind == "link"))


def _mounts_of_path(kind: Kind, path: str) -> dict[str, Mount]:
    """Return the mount for a path, and a link if it leads over links on the machine."""
    real = str(Path(path).resolve(strict=True))
    by_target = {real: Mount(kind, real, real)}
    if real != path and Path(path).is_symlink() and not Path(path).is_file():
        by_target[path] = Mount("link", path, real)
    elif real != path:
        by_target[path] = Mount(kind, path, real)
    return by_target


def landlock_rules(
    readable: Iterable[str], writable: Iterable[str], temporary: str, devices: Sequence[str] = ()
) -> list[tuple[str, int]]:
    """Return the paths and rights for a sandbox in the machine's view."""
    read = (*SYSTEM, *map(str, python_folders()), *readable)
    return [
        *((path, landlock.ACCELERATOR) for path in devices),
        # The driver of a GPU names the threads of a process there. Only runs with a user of their own get
        # GPUs at this level, and the files of other users stay closed to them.
        (_PROC, landlock.WRITING if devices else landlock.READING),
        *((path, landlock.READING) for path in read),
        *((path, landlock.DEVICE) for path in DEVICES),
        *((path, landlock.ALL) for path in (*writable, temporary)),
    ]
