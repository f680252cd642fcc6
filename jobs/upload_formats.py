"""Detects the format of an uploaded file from its name and its first and last bytes."""

from pathlib import Path
from typing import Literal

from jobs.contracts.dialect import encoding_of
from jobs.contracts.problems import Problem
from jobs.errors import BadInput

Source = Literal["csv", "json_lines", "npz", "npy", "parquet", "arrow"]
SUFFIXES: dict[str, Source] = {
    ".csv": "csv",
    ".tsv": "csv",
    ".tab": "csv",
    ".txt": "csv",
    ".jsonl": "json_lines",
    ".ndjson": "json_lines",
    ".npz": "npz",
    ".npy": "npy",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
}
_ZIP, _PARQUET, _NPY = b"PK\x03\x04", b"PAR1", b"\x93NUMPY"
_ARROW = (b"ARROW1", b"\xff\xff\xff\xff")
"""The first bytes of a file and of a stream of Arrow."""
_HEAD = 65_536
LABELS: dict[Source, str] = {
    "csv": "CSV",
    "json_lines": "JSON Lines",
    "npz": "NPZ",
    "npy": "NPY",
    "parquet": "Parquet",
    "arrow": "Arrow",
}
"""Names of the formats for people."""


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
        raise _bad(f"{name!r} does not contain {LABELS[source]} data")
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
    match source:
        case "npz":
            return head.startswith(_ZIP)
        case "npy":
            return head.startswith(_NPY)
        case "arrow":
            return head.startswith(_ARROW)
        case "parquet":
            # The format ends with the same bytes, so an incomplete upload is found here.
            return head.startswith(_PARQUET) and tail == _PARQUET
    if head.startswith((_ZIP, _PARQUET, _NPY, _ARROW[0])):
        return False
    encoding = encoding_of(head, is_all=False)
    return encoding == "utf-16" or b"\0" not in head


def _bad(message: str) -> BadInput:
    return BadInput(message, [Problem("/file", message)])
