"""Creates files atomically when several processes may do so at the same time."""

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
