"""The folder in which model children with user code have their folders."""

import hashlib
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

from workers.confinement.start.files import ENTER


def shared_folder(home: Path) -> Path:
    """Return an empty folder outside the home, which is closed to the children's users.

    The files that a killed server left in it are deleted.
    """
    digest = hashlib.sha256(str(home.resolve()).encode()).hexdigest()[:12]
    folder = Path(tempfile.gettempdir()) / f"trainyard-serving-{os.geteuid()}-{digest}"
    with suppress(FileExistsError):
        folder.mkdir(mode=ENTER)
    # Anyone can create something there.
    if folder.is_symlink() or not folder.is_dir() or folder.lstat().st_uid != os.geteuid():
        folder = Path(tempfile.mkdtemp(prefix="trainyard-serving-"))
    folder.chmod(ENTER)
    for left in folder.iterdir():
        shutil.rmtree(left, ignore_errors=True)
    return folder
