"""Confines this process: hides folders from it and takes its user and privileges."""

import os
import resource
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from jobs.messages.fork import Confinement
from workers.system import kernel

_TEMPORARY = ("/tmp", "/var/tmp", "/dev/shm")  # noqa: S108  replaced by private ones
_EMPTY = "mode=0755,size=1m"
_SCRATCH = "mode=1777,size=25%"


class _Step(NamedTuple):
    """Hides the folder at `path`, or shows the open folder `descriptor` there."""

    path: Path
    descriptor: int | None
    options: str = _EMPTY


def confine(confinement: Confinement) -> None:
    """Take on the user in a confinement, for good. Call it before there are other threads.

    Raises:
        OSError: the kernel refused; the process must end.
    """
    if confinement.hidden:
        _hide(confinement)
    os.setgroups([confinement.group])
    os.setresgid(confinement.uid, confinement.uid, confinement.uid)
    os.setresuid(confinement.uid, confinement.uid, confinement.uid)
    # A change from root to another user clears them, but other users may have some as well.
    kernel.drop_capabilities()
    # Without a core file: it would contain the data of the run.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # The user id belongs to this process alone, so no other process may use this to read its memory.
    kernel.allow_own_proc()
    # Folders that runners share have access control lists, for which this has no effect.
    os.umask(0o077)


def _hide(confinement: Confinement) -> None:
    working_folder = Path.cwd()
    # The folders that lead to visible ones must be open to the runner's user.
    os.umask(0o022)
    kernel.unshare_mounts()
    with ExitStack() as files:
        # All are opened before the first is hidden. The outermost first: later ones are mounted inside.
        for path, descriptor, options in sorted(
            _steps(confinement, files), key=lambda step: len(step[0].parts)
        ):
            if descriptor is not None:
                path.mkdir(parents=True, exist_ok=True)
                kernel.bind_mount(descriptor, str(path))
            # A missing one is below another hidden folder.
            elif path.is_dir():
                kernel.mount_tmpfs(str(path), options=options)
    # The present one is below the new mounts.
    os.chdir(working_folder)


def _steps(confinement: Confinement, files: ExitStack) -> Iterator[_Step]:
    hidden = {Path(path) for path in confinement.hidden}
    for folder in _TEMPORARY:
        yield _Step(Path(folder), None, _SCRATCH)
    for path in hidden - set(map(Path, _TEMPORARY)):
        yield _Step(path, None)
    for name in confinement.visible:
        path = Path(name)
        if not path.is_dir():
            continue
        descriptor = os.open(path, os.O_PATH | os.O_DIRECTORY)
        files.callback(os.close, descriptor)
        yield _Step(path, descriptor)
