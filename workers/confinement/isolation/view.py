"""Decides which folders confined processes see."""

import site
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

CODE_ROOT = Path(__file__).resolve().parents[3]


class View(NamedTuple):
    """Folders that are hidden, and folders below them that are not."""

    hidden: tuple[str, ...] = ()
    visible: tuple[str, ...] = ()

    @classmethod
    def hiding(cls, private: Iterable[Path], shared: Iterable[Path]) -> "View":
        """Return a view without the folders `private`, except `shared` ones, Python and this program.

        A folder that others may not enter hides folders that a process needs, such as a Python in the home of
        its user. It is replaced by an empty one that has only the needed ones.
        """
        hidden = {folder.resolve() for folder in private}
        program = {folder.resolve() for folder in _program()}
        visible = {folder.resolve() for folder in shared} | {
            folder for folder in program if program.isdisjoint(folder.parents)
        }
        for folder in [*visible]:
            closed = [parent for parent in folder.parents if not _others_may_enter(parent)]
            if closed:
                hidden.add(closed[-1])  # the outermost
        return cls(tuple(sorted(map(str, hidden))), tuple(sorted(map(str, visible))))


def ancestors(folder: Path, top: Path) -> list[Path]:
    """Return a folder's parents from `top` on. `top` is among them if the folder is below it."""
    folder, top = folder.resolve(), top.resolve()
    return [parent for parent in reversed(folder.parents) if parent == top or top in parent.parents]


def _program() -> set[Path]:
    """Return the folders with Python, its packages and this program."""
    # Not all of sys.path: it may have the working folder, with other files below it.
    python_folders = {Path(name) for name in (sys.prefix, sys.base_prefix, *site.getsitepackages())}
    return {path for path in {*python_folders, CODE_ROOT} if path.is_dir()}


def _others_may_enter(folder: Path) -> bool:
    try:
        return bool(folder.stat().st_mode & 0o001)
    except OSError:
        return False
