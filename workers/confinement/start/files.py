"""The folder for one process with user code: the files that it reads, its user and its packages."""

import os
import shutil
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Self

from workers.confinement.environments.folder import Held
from workers.confinement.isolation.access import INPUTS, Isolation, RunnerAccess
from workers.confinement.isolation.users import RunnerUser
from workers.confinement.sandbox.launch import Owner
from workers.confinement.sandbox.view import CODE_ROOT, PACKAGES

FOR_ALL = 0o755
"""The mode of folders that all users can list."""
ENTER = 0o711
"""The mode of folders that all users can enter, but not list."""


@dataclass
class ProcessFiles:
    """The files for one process, all in one folder. The function that makes them also closes them.

    Attributes:
        folder: the folder. No other process but this one can enter it, or knows its name.
        access: gives it files, if it has its own user and access lists name that user.
        user: its user, if the files in the folder are open to every user.
        packages: keeps its interpreter's packages; None if it has no others than this program.
    """

    folder: Path
    access: RunnerAccess | None = None
    user: RunnerUser | None = None
    packages: Held | None = None

    @classmethod
    def create(cls, folder: Path, isolation: Isolation | None) -> Self:
        """Return the files for a new process in an empty folder, which is deleted if that fails.

        Args:
            folder: its folder.
            isolation: gives it its own user.

        Raises:
            OSError: no user id is free, or the folder cannot be shared.
        """
        with ExitStack() as undo:
            undo.callback(remove_tree, folder)
            files = cls(folder, None if isolation is None else isolation.create_access(folder))
            undo.pop_all()
        return files

    @property
    def inputs(self) -> Path:
        """Files that it reads."""
        return self.folder / INPUTS

    @property
    def code(self) -> Path:
        """The user code, which it reads."""
        return self.folder / "code"

    @property
    def program(self) -> Path:
        """Has links to this program's packages.

        Python must be able to list it, and the folder of the packages themselves may have other files.
        """
        return self.folder / "program"

    @property
    def scratch(self) -> Path:
        """Has its temporary folder."""
        return self.folder / "scratch"

    @property
    def readable(self) -> tuple[str, ...]:
        """The folders that it reads."""
        return (str(self.inputs), str(self.code), str(self.program))

    @property
    def owner(self) -> Owner | None:
        """Its user; None if it has this process's."""
        if self.access is not None:
            return Owner(self.access.user.uid, self.access.group)
        return None if self.user is None else Owner(self.user.uid, self.user.uid)

    def fill(self, code: Iterable[tuple[str, Path]], packages: Iterable[Path] = ()) -> None:
        """Make the folders, with the code and the program. It copies files: call it in a thread.

        Args:
            code: the path to each file in the code, and its place.
            packages: folders with packages that are imported beside this program's.

        Raises:
            ValueError: a file's path leads out of the code.
            OSError: the disk is full, or a file is missing.
        """
        modes = {self.code: FOR_ALL, self.program: FOR_ALL, self.scratch: ENTER}
        if self.access is None:
            modes[self.inputs] = FOR_ALL
        for folder, mode in modes.items():
            folder.mkdir()
            folder.chmod(mode)
        for package in (*(CODE_ROOT / name for name in PACKAGES), *packages):
            (self.program / package.name).symlink_to(package)
        for path, place in code:
            self._put_code(path, place)

    def _put_code(self, path: str, place: Path) -> None:
        relative = PurePosixPath(path)
        if relative.is_absolute() or ".." in relative.parts or not relative.parts:
            raise ValueError(f"a file of code cannot have the path {path[:100]!r}")
        for parent in reversed(relative.parents[:-1]):
            (self.code / parent).mkdir(exist_ok=True)
            (self.code / parent).chmod(FOR_ALL)
        _copy(place, self.code / relative)

    def read_only(self, file: Path) -> Path:
        """Return the place at which the process can read a file: a link, or a copy, in the inputs.

        Raises:
            OSError: the disk is full, or the file cannot be shared.
        """
        if self.access is not None:
            return self.access.read_only(file)
        place = self.inputs / file.name
        if not place.exists():
            if self.user is not None:
                _copy(file, place)
            else:
                _link(file, place)
        return place

    def close(self) -> None:
        """Kill the rest of its user's processes, let others have the user, and delete everything."""
        if self.packages is not None:
            self.packages.release()
        if self.access is not None:
            self.access.close()
        ended = self.user is not None and self.user.end_processes()
        remove_tree(self.folder)
        # Otherwise the id stays in use until this process ends.
        if self.user is not None and ended:
            self.user.release()


def packages_of(python: str) -> tuple[str, ...]:
    """Return the folders with an interpreter's packages; none for this program's own, which is empty."""
    # A virtual environment: the folder above that of its programs.
    return (str(Path(python).parent.parent),) if python else ()


def remove_tree(folder: Path) -> None:
    """Delete a folder that user code has written."""
    # Folders may be nested deeper than Python can follow.
    with suppress(RecursionError):
        shutil.rmtree(folder, ignore_errors=True)


def _copy(source: Path, target: Path) -> None:
    shutil.copyfile(source, target)
    target.chmod(0o644)


def _link(file: Path, place: Path) -> None:
    try:
        os.link(file, place, follow_symlinks=False)
    except OSError:
        # It is on another file system.
        shutil.copyfile(file, place)
