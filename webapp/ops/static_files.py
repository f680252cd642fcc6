"""Builds the hashed, compressed copies of the static files that the production settings serve.

Each content has a folder of its own in the home, named by its digest, which appears once it is complete. So
web servers may start at the same time, one that is killed leaves nothing that another would serve, and an
upgrade removes no file that a running server still sends.
"""

import fcntl
import hashlib
import logging
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import IO

from django.conf import settings
from django.contrib.staticfiles import finders
from django.contrib.staticfiles.management.commands import collectstatic
from django.core.management import call_command

from webapp.assets import ModuleManifestStorage
from webapp.ops.errors import OpsError

log = logging.getLogger(__name__)

LOCK, UNFINISHED, UNUSED = ".lock", ".building", ".unused"
USED = ".used"
"""A file in each folder on which the servers that send its files have a shared lock."""
DIGEST_LENGTH = 16

_own_locks: list[IO[bytes]] = []
"""Open until the process ends."""


def use() -> None:
    """Let this process serve the copies of the present files; they are built if they are missing."""
    if settings.WHITENOISE_USE_FINDERS:
        return
    home = Path(settings.STATIC_ROOT)
    with _locked(home / LOCK, fcntl.LOCK_EX):
        folder = _ensured(home)
        # Taken under the first lock, so that no other process removes the folder before.
        used = (folder / USED).open("wb")
        fcntl.flock(used, fcntl.LOCK_SH)
        _own_locks.append(used)
        _remove_unused(home, folder)
    settings.STATIC_ROOT = folder


def build() -> None:
    """Build the copies of the present files, unless they exist.

    Raises:
        OpsError: they cannot be written.
    """
    if settings.WHITENOISE_USE_FINDERS:
        return
    home = Path(settings.STATIC_ROOT)
    try:
        with _locked(home / LOCK, fcntl.LOCK_EX):
            _ensured(home)
    except OSError as error:
        reason = f"{error.strerror or error}"
        raise OpsError(f"The style sheets and scripts cannot be written to {home}: {reason}.") from error


def _ensured(home: Path) -> Path:
    folder = home / _digest()
    if not folder.is_dir():
        unfinished = home / UNFINISHED
        shutil.rmtree(unfinished, ignore_errors=True)
        command = collectstatic.Command()
        command.storage = ModuleManifestStorage(location=unfinished, base_url=settings.STATIC_URL)
        call_command(command, verbosity=0, interactive=False)
        unfinished.rename(folder)
    return folder


def _digest() -> str:
    """Return the digest of all source files, and of the programs that make the copies."""
    digest = hashlib.sha256(f"{version('django')} {version('whitenoise')}".encode())
    for path, file in sorted(_sources()):
        digest.update(f"\0{path}\0".encode())
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()[:DIGEST_LENGTH]


def _sources() -> Iterator[tuple[str, Path]]:
    for finder in finders.get_finders():
        for path, storage in finder.list([]):
            yield path, Path(storage.path(path))


def _remove_unused(home: Path, own: Path) -> None:
    """Remove copies of other contents that no server sends, and those of earlier versions of the program."""
    shutil.rmtree(home / UNUSED, ignore_errors=True)
    for path in list(home.iterdir()):
        if path == own or path.name == LOCK:
            continue
        if not path.is_dir():
            path.unlink(missing_ok=True)
            continue
        try:
            with _locked(path / USED, fcntl.LOCK_EX | fcntl.LOCK_NB):
                # Renamed first: a process that is killed meanwhile must not leave a part under its name.
                shutil.rmtree(path.rename(home / UNUSED), ignore_errors=True)
        except OSError as error:
            # Another server sends it, or it cannot be removed: no reason not to start.
            log.debug("%s stays: %s", path, error)


@contextmanager
def _locked(file: Path, operation: int) -> Iterator[None]:
    """Lock a file. The kernel ends the lock with the process.

    Raises:
        BlockingIOError: another process has the lock, and the operation does not wait.
    """
    descriptor = os.open(file, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, operation)
        yield
    finally:
        os.close(descriptor)
