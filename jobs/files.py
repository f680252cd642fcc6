"""Creates files atomically when several processes may do so at the same time."""

import os
import tempfile
from pathlib import Path


def create_once(path: Path, content: bytes, mode: int = 0o600) -> None:
    """Create a file with its content atomically. An existing file is left unchanged."""
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}-") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
        Path(file.name).chmod(mode)
        try:
            path.hardlink_to(file.name)
        except FileExistsError:
            return
