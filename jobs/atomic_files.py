"""Creates and replaces files atomically, when several processes may do so at the same time or be killed."""

import os
import tempfile
from contextlib import suppress
from pathlib import Path


def create_once(path: Path, content: bytes, mode: int = 0o600) -> None:
    """Create a file with its content atomically. An existing file is left unchanged."""
    # In the same folder, because a hard link cannot cross file systems.
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}-") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
        # Before the file gets its name: other users must never be able to open a secret.
        Path(file.name).chmod(mode)
        # A link, because a rename would replace the file of a process that was faster.
        with suppress(FileExistsError):
            path.hardlink_to(file.name)


def replace_file(path: Path, content: bytes, mode: int = 0o600) -> None:
    """Replace a file, or create it, in one step: after a kill it has the earlier content or the new one.

    Raises:
        OSError: it cannot be written.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
