"""Unpacks compressed files, with a limit for their size."""

import bz2
import gzip
import lzma
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from jobs.spec.data.file_limits import FileLimits
from workers.engine.data.expansion import CHUNK_BYTES, too_large
from workers.engine.data.reading.damage import reading

XZ_MEMORY = 256 << 20
"""Bytes that a file of xz may make its decoder use: its strongest preset needs 65 MiB."""


def unpack_file(path: Path, method: str, target: Path, limits: FileLimits) -> None:
    """Unpack a compressed file.

    Args:
        path: the file.
        method: one of `jobs.upload_formats.COMPRESSIONS`.
        target: the new file.
        limits: how many bytes it may have.

    Raises:
        TooLarge: it has more bytes.
        DamagedFile: it is damaged or incomplete.
    """
    size = 0
    with target.open("wb") as file:
        for block in _blocks(path, method):
            size += len(block)
            if size > limits.expanded_bytes:
                raise too_large(f"{path.name} unpacks to more than {limits.expanded_bytes:,} bytes", limits)
            file.write(block)


def first_bytes(path: Path, method: str, count: int) -> bytes:
    """Return the first bytes that a compressed file has when it is unpacked.

    Raises:
        DamagedFile: it is damaged or incomplete.
    """
    found = b""
    for block in _blocks(path, method):
        found += block
        if len(found) >= count:
            break
    return found[:count]


def _blocks(path: Path, method: str) -> Iterator[bytes]:
    with reading(path, method, "compress the file again"), _opened(path, method) as file:
        while block := file.read(CHUNK_BYTES):
            yield block


@contextmanager
def _opened(path: Path, method: str) -> Iterator[IO[bytes] | Any]:
    match method:
        case "gzip":
            with gzip.open(path) as file:
                yield file
        case "bzip2":
            with bz2.open(path) as file:
                yield file
        case "xz":
            with path.open("rb") as packed:
                yield _XzReader(packed)
        case _:
            import pyarrow as pa

            # Its decoder refuses windows above 128 MiB.
            with pa.OSFile(str(path)) as source, pa.CompressedInputStream(source, "zstd") as stream:
                yield stream


class _XzReader:
    """Reads a file of xz with a limit for the decoder's memory, which `lzma.open` cannot set."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._decoder = lzma.LZMADecompressor(memlimit=XZ_MEMORY)

    def read(self, size: int) -> bytes:
        """Return at most so many bytes; none at the end."""
        while True:
            if self._decoder.eof:
                # Several streams may follow each other, with zero bytes between them.
                rest = (self._decoder.unused_data or self._file.read(CHUNK_BYTES)).lstrip(b"\0")
                if not rest:
                    return b""
                self._decoder = lzma.LZMADecompressor(memlimit=XZ_MEMORY)
                block = self._decoder.decompress(rest, size)
            else:
                data = self._file.read(CHUNK_BYTES) if self._decoder.needs_input else b""
                if self._decoder.needs_input and not data:
                    raise EOFError("it ends before its end marker")
                block = self._decoder.decompress(data, size)
            if block:
                return block
