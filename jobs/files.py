"""Files that several processes may want to make at the same moment."""

import os
import tempfile
from pathlib import Path


def create_once(path: Path, content: bytes, mode: int = 0o600) -> None:
    """Make a file at once with its content; the first of several processes wins."""
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}-") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
        Path(file.name).chmod(mode)
        try:
            path.hardlink_to(file.name)
        except FileExistsError:
            return
