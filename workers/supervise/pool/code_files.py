"""Finds the files in a code version on this machine."""

from pathlib import Path

from jobs.messages.task import OwnCode


def code_places(code: OwnCode) -> list[tuple[str, Path]]:
    """Return the path to each file in a code version, and its place."""
    return [(file.path, Path(file.place)) for file in code.files]


def code_in(folder: Path, code: OwnCode) -> OwnCode:
    """Return a code version whose files have been copied into a folder."""
    files = (file.model_copy(update={"place": str(folder / file.path)}) for file in code.files)
    return code.model_copy(update={"files": tuple(files), "folder": str(folder)})
