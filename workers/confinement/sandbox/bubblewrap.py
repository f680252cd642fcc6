"""Builds the command line for bubblewrap."""

import shutil
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

from workers.confinement.sandbox.plan import Mount

PROGRAM = "bwrap"
PRIVILEGES = ("CAP_SETUID", "CAP_SETGID", "CAP_DAC_READ_SEARCH")
OWN_DEVICES = frozenset(f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom", "tty"))
"""The devices that `--dev` makes."""
_KINDS = {"read": "--ro-bind", "write": "--bind", "device": "--dev-bind"}


def find() -> str | None:
    """Return the path to bubblewrap; None if it is not installed."""
    return shutil.which(PROGRAM)


def command_line(
    program: str,
    mounts: Iterable[Mount],
    inner: Iterable[str],
    *,
    network: bool,
    privileged: bool,
    shared_memory: int,
) -> list[str]:
    """Return the command line that runs `inner` in the view `mounts`.

    Args:
        program: the path to bubblewrap.
        mounts: the view, the outer folders first.
        inner: a command.
        network: whether it keeps the machine's network.
        privileged: the worker is root, so no user namespace is needed.
        shared_memory: bytes in the file system /dev/shm.
    """
    return [
        program,
        *("--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try", "--die-with-parent"),
        *(() if network else ("--unshare-net",)),
        # `inner` itself becomes another user. Until then it needs these, the last one because only that user
        # may enter the temporary folder, in which the code of this program may be mounted.
        *(("--cap-drop", "ALL", *_each("--cap-add", PRIVILEGES)) if privileged else ()),
        *(() if privileged else ("--unshare-user",)),
        *("--dev", "/dev", "--proc", "/proc"),
        *_binds(mounts),
        *("--perms", "1777", "--size", str(shared_memory), "--tmpfs", "/dev/shm"),  # noqa: S108  a private one
        # They are in memory without a limit.
        *("--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/"),
        "--",
        *inner,
    ]


def _each(option: str, values: Iterable[str]) -> Iterator[str]:
    for value in values:
        yield from (option, value)


def _binds(mounts: Iterable[Mount]) -> Iterator[str]:
    targets = {"/", "/dev"}
    for mount in mounts:
        # Bubblewrap itself would close the folders above a closed one, also for the user of the run.
        for parent in reversed(PurePosixPath(mount.target).parents):
            if str(parent) not in targets:
                targets.add(str(parent))
                yield from ("--perms", "0755", "--dir", str(parent))
        targets.add(mount.target)
        if mount.kind == "link":
            yield from ("--symlink", mount.source, mount.target)
        elif mount.target not in OWN_DEVICES:
            yield from (_KINDS[mount.kind], mount.source, mount.target)
