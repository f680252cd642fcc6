"""The persistent cache of compiled programs: one folder a project, safe against whatever ends a runner.

JAX's own file cache writes in place and never again: a runner killed in the middle leaves a piece that every
later run reads, warns of and compiles around. Here a file appears whole or not at all, what cannot be read is
replaced, and reading marks a file as used, by which the node decides what goes when there is too much.
"""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

import jax
from jax._src import compilation_cache
from jax._src.compilation_cache_interface import CacheInterface

_APART = ContextVar("_APART", default=False)


class FileCache(CacheInterface):  # type: ignore[misc,unused-ignore]
    """Compiled programs as files named by their key."""

    def __init__(self, folder: Path) -> None:
        self._folder = self._path = folder  # JAX names the second one in its messages

    def get(self, key: str) -> bytes | None:
        """Return a program, None where there is none."""
        file = self._folder / key
        try:
            program = file.read_bytes()
            os.utime(file)
        except OSError:
            return None  # nobody has compiled it, or the node has just removed it
        return program

    def put(self, key: str, value: bytes) -> None:
        """Keep a program. One that stands already was not readable, else nobody would have compiled it."""
        unfinished = self._folder / f".{secrets.token_hex(8)}"
        try:
            unfinished.write_bytes(value)
            unfinished.replace(self._folder / key)
        except OSError:  # a full disk, or a folder just removed: it is compiled once more
            unfinished.unlink(missing_ok=True)


class _ForJax(FileCache):
    """What JAX itself asks for programs by what they compute, unless somebody keeps them `apart`."""

    def get(self, key: str) -> bytes | None:
        return None if _APART.get() else super().get(key)

    def put(self, key: str, value: bytes) -> None:
        if not _APART.get():
            super().put(key, value)


def use(folder: str) -> None:
    """Read and write compiled programs in `folder` from now on; another one is used no more."""
    if jax.config.jax_compilation_cache_dir == folder:
        return
    Path(folder).mkdir(parents=True, exist_ok=True, mode=0o700)
    compilation_cache.reset_cache()  # JAX opens its cache once
    compilation_cache.get_file_cache = _open
    jax.config.update("jax_compilation_cache_dir", folder)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


def in_use() -> FileCache | None:
    """Return the cache of this process, None if it has none."""
    folder = jax.config.jax_compilation_cache_dir
    return FileCache(Path(folder)) if folder else None


@contextmanager
def apart() -> Iterator[None]:
    """Compile past JAX's part of the cache, for who keeps the result: only fresh ones can be written out."""
    token = _APART.set(True)
    try:
        yield
    finally:
        _APART.reset(token)


def _open(path: str) -> tuple[CacheInterface, str]:
    return _ForJax(Path(path)), path
