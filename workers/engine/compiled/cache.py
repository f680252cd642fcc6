"""Stores compiled programs in one folder for each project, safe against runners that are killed.

JAX's own file cache writes in place and never overwrites: if a runner is killed while it writes, every later
run reads the incomplete file, warns and compiles again. This cache writes to a temporary file and renames it,
and replaces files that cannot be read. Reading updates a file's modification time; the node deletes the files
unused for longest when the folder exceeds its limit.
"""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path

import jax
from jax._src import compilation_cache
from jax._src.compilation_cache_interface import CacheInterface

_BYPASS_JAX = ContextVar("_BYPASS_JAX", default=False)


class FileCache(CacheInterface):  # type: ignore[misc,unused-ignore]
    """Stores each program in a file in `folder`, named by its key."""

    def __init__(self, folder: Path) -> None:
        self.folder = self._path = folder  # JAX's messages read `_path`

    def get(self, key: str) -> bytes | None:
        """Return the program stored under `key`, or None."""
        file = self.folder / key
        try:
            program = file.read_bytes()
            # The node deletes the files with the oldest modification times.
            os.utime(file)
        # Never compiled, or just deleted by the node.
        except OSError:
            return None
        return program

    def put(self, key: str, value: bytes) -> None:
        """Store a program; replace the file if there is one."""
        # A runner may be killed while it writes, so the file gets its name only when it is complete. The file
        # that it replaces is a damaged program or an older timing result.
        unfinished = self.folder / f".{secrets.token_hex(8)}"
        try:
            unfinished.write_bytes(value)
            unfinished.replace(self.folder / key)
        # Full disk, or the folder was removed: the program is compiled again next time.
        except OSError:
            with suppress(OSError):
                unfinished.unlink(missing_ok=True)


class _JaxCache(FileCache):
    """The cache as JAX itself uses it; empty within `bypass_jax_cache`."""

    def get(self, key: str) -> bytes | None:
        return None if _BYPASS_JAX.get() else super().get(key)

    def put(self, key: str, value: bytes) -> None:
        if not _BYPASS_JAX.get():
            super().put(key, value)


def enable(folder: str) -> None:
    """Read and write compiled programs in `folder` from now on, instead of any other folder."""
    if jax.config.jax_compilation_cache_dir == folder:
        return
    # The operator may have deleted the cache, and a runner cannot create it again. It works without one.
    with suppress(OSError):
        Path(folder).mkdir(parents=True, exist_ok=True, mode=0o700)
    # JAX opens its cache once for each process. It has no setting for another implementation on local files.
    compilation_cache.reset_cache()
    compilation_cache.get_file_cache = lambda path: (_JaxCache(Path(path)), path)
    jax.config.update("jax_compilation_cache_dir", folder)
    # By default JAX does not store small and quickly compiled programs, which most of ours are.
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


def active() -> FileCache | None:
    """Return the cache that is enabled in this process, or None."""
    folder = jax.config.jax_compilation_cache_dir
    return FileCache(Path(folder)) if folder else None


@contextmanager
def bypass_jax_cache() -> Iterator[None]:
    """Return a context in which programs are compiled without JAX's cache."""
    token = _BYPASS_JAX.set(True)
    try:
        yield
    finally:
        _BYPASS_JAX.reset(token)
