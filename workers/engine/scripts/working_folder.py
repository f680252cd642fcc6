"""Finds the files that a script wrote in its working folder, beside the folder of outputs."""

import os
from collections.abc import Container, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from jobs.spec.sections.script_model import MODEL_FILE
from workers.engine.scripts.outputs import SHOWN, walk_files

CACHES = ("__pycache__", "wandb", "lightning_logs", "mlruns")
"""Folders that programs keep for themselves."""

type State = tuple[int, int]
"""A file's size and the time of its last change."""


def file_states(folder: Path) -> dict[str, State]:
    """Return the files in a folder, by their paths in it. Links are left out."""
    states: dict[str, State] = {}
    # A script can put a link in place of its folder.
    for name, entry in () if folder.is_symlink() else walk_files(folder):
        with suppress(OSError):
            if entry.is_file(follow_symlinks=False):
                facts = entry.stat(follow_symlinks=False)
                states[name] = (facts.st_size, facts.st_mtime_ns)
    return states


def written_files(folder: Path, before: Mapping[str, State]) -> list[str]:
    """Return the new and the changed files: the model first, and those in folders last.

    Hidden files and caches are no results.

    Args:
        folder: the working folder.
        before: its files when the script started.
    """
    states = file_states(folder)
    written = [name for name, state in states.items() if before.get(name) != state and not _is_cache(name)]
    return sorted(written, key=lambda name: (name != MODEL_FILE, name.count("/"), name))


def lost_files_warning(entry: str, written: Sequence[str]) -> str:
    """Return the warning about files that are deleted.

    Args:
        entry: the script.
        written: its files in the working folder; one or more.
    """
    more = f", and {len(written) - SHOWN} more" if len(written) > SHOWN else ""
    return (
        f"the script {entry} wrote {', '.join(written[:SHOWN])}{more} in its working folder, which is "
        "deleted after each run of a trial. To keep files, write them to the folder that the variable "
        "TRAINYARD_OUTPUT names."
    )


def remove_others(folder: Path, kept: Container[str]) -> None:
    """Remove all files in a folder except the kept ones, and the folders that are empty then.

    Raises:
        OSError: a folder cannot be read, or a file cannot be removed.
    """
    if folder.is_symlink():
        return
    for place, folders, files in os.walk(folder, topdown=False):
        for path in (Path(place, name) for name in (*files, *folders)):
            if path.is_dir() and not path.is_symlink():
                if not any(path.iterdir()):
                    path.rmdir()
            elif path.relative_to(folder).as_posix() not in kept:
                path.unlink()


def _is_cache(name: str) -> bool:
    parts = name.split("/")
    return name.endswith(".pyc") or any(part.startswith(".") or part in CACHES for part in parts)
