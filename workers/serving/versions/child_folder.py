"""The folders in which model children with code of users have their files."""

import hashlib
import os
import shutil
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from workers.confinement.isolation.users import RunnerUser
from workers.confinement.sandbox.launch import Owner
from workers.confinement.sandbox.view import CODE_ROOT, PACKAGES
from workers.serving.versions.sandboxed_model import CodeRefused, SandboxedModel


@dataclass
class ChildFolder:
    """The folder of one child, and its user if the server is root.

    Attributes:
        folder: has its code, its program and its temporary files.
        user: its user id; None if it has that of the server.
    """

    folder: Path
    user: RunnerUser | None = None

    @property
    def owner(self) -> Owner | None:
        return None if self.user is None else Owner(self.user.uid, self.user.uid)

    def put_files(self, version: SandboxedModel) -> tuple[Path, Path]:
        """Copy the code into the folder; return its place, and that of the model file."""
        code = self.folder / "code"
        code.mkdir(mode=0o755)
        code.chmod(0o755)
        for name, source in version.files:
            path = PurePosixPath(name)
            if path.is_absolute() or ".." in path.parts or not path.parts:
                raise CodeRefused(f"a file of code cannot have the path {name[:100]!r}")
            for parent in reversed(path.parents[:-1]):
                (code / parent).mkdir(exist_ok=True)
                (code / parent).chmod(0o755)
            _copy(source, code / path)
        if self.user is None:
            return code, version.model
        # The cache is closed to other users.
        model = self.folder / version.model.name
        _copy(version.model, model)
        return code, model

    def put_program(self) -> Path:
        """Return a folder from which this program's packages are imported: theirs has other things beside."""
        program = self.folder / "program"
        program.mkdir(mode=0o755)
        program.chmod(0o755)
        for name in PACKAGES:
            (program / name).symlink_to(CODE_ROOT / name)
        return program

    def close(self) -> None:
        """Delete the folder, and let other processes have the user."""
        # Folders may be nested deeper than Python can follow.
        with suppress(RecursionError):
            shutil.rmtree(self.folder, ignore_errors=True)
        if self.user is not None and self.user.end_processes():
            self.user.release()


def _copy(source: Path, target: Path) -> None:
    shutil.copyfile(source, target)
    target.chmod(0o444)


def shared_folder(home: Path) -> Path:
    """Return an empty folder outside of the home, which is closed to the users of children.

    The files of a killed server in it are deleted.
    """
    digest = hashlib.sha256(str(home.resolve()).encode()).hexdigest()[:12]
    folder = Path(tempfile.gettempdir()) / f"trainyard-serving-{os.geteuid()}-{digest}"
    with suppress(FileExistsError):
        folder.mkdir(mode=0o711)
    # Anyone can create something there.
    if folder.is_symlink() or not folder.is_dir() or folder.lstat().st_uid != os.geteuid():
        folder = Path(tempfile.mkdtemp(prefix="trainyard-serving-"))
    folder.chmod(0o711)
    for left in folder.iterdir():
        shutil.rmtree(left, ignore_errors=True)
    return folder
