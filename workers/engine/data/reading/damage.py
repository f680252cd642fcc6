"""Reports errors from libraries that read files from outside as damage to the file."""

from contextlib import AbstractContextManager
from pathlib import Path

from workers.engine.errors import DamagedFile, EngineError
from workers.system.library_errors import explaining_damage

MAX_REASON = 300
"""Maximum number of characters of a library's message."""


def reading(path: Path, kind: str, remedy: str = "") -> AbstractContextManager[None]:
    """Report every error in the block as damage to a file. Only the code that reads the file belongs in it.

    Args:
        path: the file; the message contains its name.
        kind: the format, such as "CSV".
        remedy: the next step for the user.

    Raises:
        DamagedFile: the block raised anything but an error from the engine or the machine, or about memory.
    """

    def explain(error: Exception) -> DamagedFile:
        # Without the folders, which are those of a worker.
        reason = str(error).strip().replace(str(path), path.name).rstrip(".") or type(error).__name__
        return DamagedFile(
            f"this file is damaged: {path.name} is not a readable {kind} file: {reason[:MAX_REASON]}"
            + (f"; {remedy}" if remedy else "")
        )

    return explaining_damage(explain, EngineError)
