"""Detects the format of an uploaded file from its name and its first and last bytes."""

import codecs
from pathlib import Path
from typing import Literal

from jobs.contracts.problems import Problem
from jobs.errors import BadInput

Source = Literal["csv", "npz", "parquet"]
SUFFIXES: dict[str, Source] = {".csv": "csv", ".npz": "npz", ".parquet": "parquet", ".pq": "parquet"}
_ZIP, _PARQUET = b"PK\x03\x04", b"PAR1"
_HEAD = 65_536


def source_of(path: Path, name: str) -> Source:
    """Return the format of an upload.

    Args:
        path: the uploaded bytes.
        name: the file name given by the user.

    Raises:
        BadInput: the suffix is unknown, the file is empty, or its content does not match the suffix.
    """
    source = SUFFIXES.get(Path(name).suffix.lower())
    if source is None:
        raise _bad(f"{name!r}: the file name must end in one of {', '.join(SUFFIXES)}")
    with path.open("rb") as file:
        head = file.read(_HEAD)
        file.seek(max(path.stat().st_size - len(_PARQUET), 0))
        tail = file.read()
    if not head:
        raise _bad(f"{name!r} is empty")
    if not _matches(source, head, tail):
        raise _bad(f"{name!r} does not contain {source.upper()} data")
    return source


def check_keras(path: Path) -> None:
    """Check that an upload begins as a `.keras` file does.

    Raises:
        BadInput: it does not.
    """
    with path.open("rb") as file:
        head = file.read(len(_ZIP))
    if head != _ZIP:
        raise _bad("The file is not a .keras archive; save the model with model.save('name.keras')")


def _matches(source: Source, head: bytes, tail: bytes) -> bool:
    if source == "npz":
        return head.startswith(_ZIP)
    if source == "parquet":
        # The format ends with the same bytes, so an incomplete upload is found here.
        return head.startswith(_PARQUET) and tail == _PARQUET
    if head.startswith((_ZIP, _PARQUET)) or b"\0" in head:
        return False
    try:
        # Incremental, because the last character of the head may be incomplete.
        codecs.getincrementaldecoder("utf-8-sig")().decode(head)
    except UnicodeDecodeError:
        return False
    return True


def _bad(message: str) -> BadInput:
    return BadInput(message, [Problem("/file", message)])
