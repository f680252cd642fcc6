"""The folder in which one runner with user code writes its checkpoints.

Each runner has its own folder in its job's, so it cannot change the checkpoints that others wrote. Those
are linked into its inputs when it may resume from them.
"""

import contextlib
import errno
import hashlib
import os
import secrets
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePath

from jobs.messages.control import Recorded
from jobs.runner_files import open_regular, opened_parent
from workers.confinement.isolation import acl
from workers.confinement.isolation.access import RunnerAccess

NOTE = "checkpoints"
"""The file in the folder of a runner with the places of its checkpoints, which a node reads after a crash."""
_PREFIX = "own-"
_LINKS, _ANY = "checkpoint-", "any"
_INCOMPLETE = ".tmp-"
"""The beginning of the names of folders in which a checkpoint is being written."""
_FOR_ALL = 0o755


@dataclass
class RunnerCheckpoints:
    """One runner's checkpoints.

    Attributes:
        root: the folder with all checkpoints.
        place: the runner's folder.
        group: the group of the runners that have users of their own.
    """

    root: Path
    place: Path
    group: int | None = None

    @classmethod
    def create(cls, job: Path, runner: Path, access: RunnerAccess | None) -> "RunnerCheckpoints":
        """Make the folder for a new runner.

        Args:
            job: the folder with its job's checkpoints.
            runner: the runner's folder.
            access: the runner's, if it has its own user.

        Raises:
            OSError: the disk is full, or the folder cannot be shared.
        """
        place = job / f"{_PREFIX}{secrets.token_hex(8)}"
        # Noted first, so that it is found after a crash.
        (runner / NOTE).write_text(f"{place}\n")
        if access is not None:
            access.grant(job, write=False)
            access.grant(place)
        else:
            place.mkdir(mode=0o700, parents=True)
        return cls(job.parent, place, None if access is None else access.group)

    def recorded(self, control: Recorded) -> Recorded:
        """Return the message with paths below this folder, which is all that the runner knows."""
        below_root = self.place.relative_to(self.root)
        folders = (PurePath(path) for path in control.folders)
        below = tuple(
            str(folder.relative_to(below_root)) for folder in folders if folder.is_relative_to(below_root)
        )
        return control.model_copy(update={"folders": below})

    def link(self, folder: str, inputs: Path) -> str:
        """Show a checkpoint to the runner, and return its path in the inputs.

        A checkpoint that is missing or damaged is an empty folder there, and the runner takes the next one.

        Args:
            folder: the checkpoint's, below the root. User code has written it.
            inputs: the folder with files that the runner reads.

        Raises:
            OSError: the disk is full.
        """
        place = inputs / f"{_LINKS}{hashlib.sha256(folder.encode()).hexdigest()[:16]}"
        if place.exists():
            return str(place)
        place.mkdir()
        place.chmod(_FOR_ALL)
        relative = os.path.relpath(folder, self.root)
        with _unless_full(), opened_parent(self.root, f"{relative}/{_ANY}") as (opened, _):
            for name in os.listdir(opened):  # noqa: PTH208  of an open folder
                with _unless_full():
                    _link(self.root, relative, name, opened, place)
                    # Runners of another machine, which has written it, may have another group.
                    if self.group is not None:
                        acl.grant(place / name, acl.group(self.group), acl.READ)
        return str(place)

    def close(self) -> None:
        """Remove incomplete checkpoints. The runner must have ended."""
        tidy(self.place)


def unlink(inputs: Path) -> None:
    """Remove the links from `RunnerCheckpoints.link`, which keep the space of deleted checkpoints."""
    for folder in inputs.glob(f"{_LINKS}*"):
        shutil.rmtree(folder, ignore_errors=True)


def tidy_after_crash(runners: Path) -> None:
    """Remove incomplete checkpoints that a dead node's runners left.

    Args:
        runners: the folder with their folders.
    """
    for note in runners.glob(f"*/{NOTE}"):
        with contextlib.suppress(OSError):
            for line in note.read_text().splitlines():
                if Path(line).name.startswith(_PREFIX):
                    tidy(Path(line))


def tidy(place: Path) -> None:
    """Remove incomplete checkpoints that a runner has left, and its folder if that is empty.

    User code has written there, and links are not followed.
    """
    with contextlib.suppress(OSError):
        for _, folders, _, opened in os.fwalk(place):
            for name in [name for name in folders if name.startswith(_INCOMPLETE)]:
                folders.remove(name)
                shutil.rmtree(name, dir_fd=opened, ignore_errors=True)
        place.rmdir()


@contextlib.contextmanager
def _unless_full() -> Iterator[None]:
    """Suppress errors from files that user code has written, but not that the disk is full."""
    try:
        yield
    except ValueError:  # the path is not below the root
        pass
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise


def _link(root: Path, relative: str, name: str, folder: int, place: Path) -> None:
    """Link a regular file in an open folder, or copy it from another file system."""
    with os.fdopen(open_regular(root, f"{relative}/{name}"), "rb") as source:
        try:
            os.link(name, place / name, src_dir_fd=folder, follow_symlinks=False)
        except OSError:
            with (place / name).open("wb") as copy:
                shutil.copyfileobj(source, copy)
            (place / name).chmod(0o644)
