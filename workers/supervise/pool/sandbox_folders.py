"""The folders of a runner with code of users, and the files that are put into them."""

import contextlib
import shutil
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from jobs.messages.task import OwnCode
from workers.confinement.isolation.access import INPUTS

WORK = "own-code"
"""The folder beside those of the attempts that has a folder for each runner, and in it one for each task."""
_CODE, _PROGRAM, _SCRATCH = "code", "program", "scratch"
FOR_ALL = 0o755
"""The mode of folders that all users can list."""
ENTER = 0o711
"""The mode of folders that all users can enter, but not list."""


class SandboxFolders(NamedTuple):
    """The folders of a runner in a sandbox.

    Attributes:
        inputs: files of its tasks, which it reads.
        code: its code, which it reads.
        program: has links to the packages of this program. Python must be able to list it, and the folder of
            the packages themselves may have other files.
        scratch: has its temporary folder.
        work: has a folder for each of its tasks, in which it writes.
    """

    inputs: Path
    code: Path
    program: Path
    scratch: Path
    work: Path

    @classmethod
    def of(cls, runner: Path, attempts: Path) -> "SandboxFolders":
        """Return the folders of a new runner.

        Args:
            runner: its folder.
            attempts: the folder of all attempts of the node.
        """
        # The results of a task are stored after its runner has ended, so they are in no folder of the runner.
        work = attempts / WORK / runner.name
        return cls(runner / INPUTS, runner / _CODE, runner / _PROGRAM, runner / _SCRATCH, work)


def remove_tree(folder: Path) -> None:
    """Delete a folder that code of users has written."""
    # Folders may be nested deeper than Python can follow.
    with contextlib.suppress(RecursionError):
        shutil.rmtree(folder, ignore_errors=True)


def remove_if_empty(folder: Path) -> None:
    """Remove a folder, unless something is in it."""
    with contextlib.suppress(OSError):
        folder.rmdir()


def code_places(code: OwnCode) -> list[tuple[str, Path]]:
    """Return the path of each file in a version of code, and its place."""
    return [(file.path, Path(file.place)) for file in code.files]


def put_code(code: OwnCode, folder: Path) -> OwnCode:
    """Copy files of users into a folder, and return the code with their new places."""
    files = []
    for file in code.files:
        relative = PurePosixPath(file.path)
        if relative.is_absolute() or ".." in relative.parts:
            raise ValueError(f"a file of code cannot have the path {file.path!r}")
        place = folder / relative
        for parent in reversed(place.relative_to(folder).parents[:-1]):
            (folder / parent).mkdir(exist_ok=True)
            (folder / parent).chmod(FOR_ALL)
        shutil.copyfile(file.place, place)
        place.chmod(0o644)
        files.append(file.model_copy(update={"place": str(place)}))
    return code.model_copy(update={"files": tuple(files), "folder": str(folder)})
