"""Keeps built environments in a folder in the home, which all its workers share.

Each has a folder named by its digest, and beside it a lock file: exclusive for the one that builds or removes
it, shared for all that use it. The kernel gives a lock back when its process dies in any way. An environment
counts as built once its file `FACTS` exists, which is written last and by renaming.
"""

import contextlib
import fcntl
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError

from jobs.atomic_files import create_once
from jobs.messages.environments import EnvironmentFacts

FACTS, USED, PLACE, LOCK = "facts.json", "used", "place", ".lock"


def python_in(folder: Path) -> str:
    """Return the path to an environment's interpreter."""
    return str(folder / "venv" / "bin" / "python")


class Held:
    """A built environment that is not removed until `release`."""

    def __init__(self, root: Path, facts: EnvironmentFacts, lock: int) -> None:
        self.folder = root / facts.digest
        self.facts = facts
        self.python = python_in(self.folder)
        self._lock: int | None = lock
        self.touch()

    def touch(self) -> None:
        """Note that it is used now."""
        # On a full disk, an older time stays.
        with contextlib.suppress(OSError):
            (self.folder / USED).touch()

    def release(self) -> None:
        """End the use, so that it may be removed."""
        if self._lock is not None:
            self.touch()
            os.close(self._lock)
            self._lock = None


class _BuiltEnvironment(NamedTuple):
    """A built environment, ordered by its last use."""

    used: float
    digest: str
    bytes: int


class EnvironmentFolder:
    """The environments in a home."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def place(self) -> str:
        """Return the folder's identity, which is created with it."""
        # Users of runs enter it, and find their environment by its name.
        self.root.mkdir(mode=0o711, parents=True, exist_ok=True)
        create_once(self.root / PLACE, secrets.token_hex(8).encode())
        return (self.root / PLACE).read_text()

    def python(self, digest: str) -> str:
        """Return the path to the interpreter that an environment has."""
        return python_in(self.root / digest)

    def hold(self, digest: str) -> Held | None:
        """Return a built environment; None if it is not built, or being built or removed."""
        lock = self._lock(digest, fcntl.LOCK_SH)
        if lock is None:
            return None
        facts = self.facts(digest)
        if facts is None:
            os.close(lock)
            return None
        return Held(self.root, facts, lock)

    @contextlib.contextmanager
    def alone(self, digest: str) -> Iterator[bool]:
        """Keep all others from an environment; yield False if it is used, built or removed by another."""
        lock = self._lock(digest, fcntl.LOCK_EX)
        if lock is None:
            yield False
            return
        try:
            yield True
        finally:
            os.close(lock)

    def facts(self, digest: str) -> EnvironmentFacts | None:
        """Return the facts about a built environment; None if it is not built."""
        try:
            return EnvironmentFacts.model_validate_json((self.root / digest / FACTS).read_bytes())
        except (OSError, ValidationError):
            return None

    def find(self, base: str, installed: str) -> str | None:
        """Return the digest of a built environment with exactly these packages; None if there is none.

        It counts as used now, so that it is not removed before its run begins.

        Args:
            base: see `EnvironmentKey`.
            installed: the packages' digest.
        """
        for digest in sorted(self._digests()):
            facts = self.facts(digest)
            if facts is not None and (facts.base, facts.installed) == (base, installed):
                with contextlib.suppress(OSError):
                    (self.root / digest / USED).touch()
                return digest
        return None

    def clear(self, digest: str) -> Path:
        """Return an empty folder for an environment. Only with the lock from `alone`."""
        folder = self.root / digest
        self._delete(folder)
        folder.mkdir(mode=0o711)
        return folder

    def complete(self, facts: EnvironmentFacts) -> None:
        """Have an environment count as built."""
        folder = self.root / facts.digest
        unfinished = folder / f".{FACTS}"
        with unfinished.open("w") as file:
            file.write(facts.model_dump_json())
            file.flush()
            os.fsync(file.fileno())
        (folder / USED).touch()
        unfinished.replace(folder / FACTS)

    def remove(self, digest: str) -> None:
        """Delete an environment. Only with the lock from `alone`."""
        self._delete(self.root / digest)

    def present(self) -> list[_BuiltEnvironment]:
        """Return the built environments, the longest unused first."""
        return sorted(
            _BuiltEnvironment(self._used(digest), digest, facts.bytes)
            for digest in self._digests()
            if (facts := self.facts(digest)) is not None
        )

    def evict(self, limit: int) -> list[str]:
        """Remove the longest unused environments above a limit, and remains of builds; return the digests.

        Those that are in use stay.

        Args:
            limit: bytes for all environments together.
        """
        present = self.present()
        total = sum(environment.bytes for environment in present)
        removed = []
        for digest in self._digests() - {environment.digest for environment in present}:
            with self.alone(digest) as is_alone:
                if is_alone and self.facts(digest) is None:
                    self.remove(digest)
        for environment in present:
            if total <= limit:
                break
            with self.alone(environment.digest) as is_alone:
                # It may have been used or built again since it was listed.
                if is_alone and self._used(environment.digest) == environment.used:
                    self.remove(environment.digest)
                    removed.append(environment.digest)
                    total -= environment.bytes
        return removed

    def used(self) -> dict[str, float]:
        """Return when each built environment was last used, in seconds since 1970."""
        return {environment.digest: environment.used for environment in self.present()}

    def is_idle(self, digest: str) -> bool:
        """Return whether an environment is not built, and no worker builds it."""
        with self.alone(digest) as is_alone:
            return is_alone and self.facts(digest) is None

    def _used(self, digest: str) -> float:
        try:
            return (self.root / digest / USED).stat().st_mtime
        except OSError:
            return 0.0

    def _digests(self) -> set[str]:
        try:
            return {entry.name for entry in os.scandir(self.root) if entry.is_dir(follow_symlinks=False)}
        except FileNotFoundError:
            return set()

    def _lock(self, digest: str, kind: int) -> int | None:
        self.root.mkdir(mode=0o711, parents=True, exist_ok=True)
        # The file stays: a lock of a deleted one would exclude no other process.
        path = self.root / f"{digest}{LOCK}"
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        return descriptor

    def _delete(self, folder: Path) -> None:
        if not folder.exists():
            return
        # First, since an environment that is being deleted must not count as built.
        (folder / FACTS).unlink(missing_ok=True)
        for place, _, _ in os.walk(folder):
            # The folders of a sealed environment cannot be changed by a worker that is not root.
            with contextlib.suppress(OSError):
                Path(place).chmod(0o700)
        with contextlib.suppress(RecursionError):
            shutil.rmtree(folder)
