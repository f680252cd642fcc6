"""Reports errors from libraries that read files from outside as damage to the file."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from workers.engine.errors import DamagedFile, EngineError
from workers.system.machine_errors import MACHINE_ERRORS

MAX_REASON = 300
"""Maximum number of characters of a library's message."""


@contextlib.contextmanager
def reading(path: Path, kind: str, remedy: str = "") -> Iterator[None]:
    """Report every error in the block as damage to a file. Only the code that reads the file belongs in it.

    Args:
        path: the file; the message contains its name.
        kind: the format, such as "CSV".
        remedy: the next step for the user.

    Raises:
        DamagedFile: the block raised anything but an error from the engine or the machine, or about memory.
    """
    try:
        yield
    except (EngineError, MemoryError):
        raise
    # Damaged bytes make libraries raise nearly every class of exception, and none of them documents which.
    except Exception as error:
        if isinstance(error, OSError) and error.errno in MACHINE_ERRORS:
            raise
        # Without the folders, which are those of a worker.
        reason = str(error).strip().replace(str(path), path.name).rstrip(".") or type(error).__name__
        raise DamagedFile(
            f"this file is damaged: {path.name} is not a readable {kind} file: {reason[:MAX_REASON]}"
            + (f"; {remedy}" if remedy else "")
        ) from error
