"""Detects an uploaded file's format from its name and its first and last bytes."""

from pathlib import Path
from typing import Literal

from jobs.errors import BadInput
from jobs.model_formats import how_to_convert
from jobs.spec.data.dialect import encoding_of
from jobs.spec.exports import STORED
from jobs.spec.problems import Problem

Source = Literal["csv", "json_lines", "npz", "npy", "parquet", "arrow", "images"]
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
    ".zip": "images",
    ".tar": "images",
    ".tgz": "images",
    ".gz": "images",
}
_ZIP, _PARQUET, _NPY = b"PK\x03\x04", b"PAR1", b"\x93NUMPY"
_ARROW = (b"ARROW1", b"\xff\xff\xff\xff")
"""The first bytes in an Arrow file and in an Arrow stream."""
_EMPTY_ZIP, _GZIP, _TAR, _TAR_PLACE = b"PK\x05\x06", b"\x1f\x8b", b"ustar", 257
_HEAD = 65_536
MAX_SAMPLE_BYTES = 32 << 20
"""Maximum size of the rows that come with an uploaded model."""
LABELS: dict[Source, str] = {
    "csv": "CSV",
    "json_lines": "JSON Lines",
    "npz": "NPZ",
    "npy": "NPY",
    "parquet": "Parquet",
    "arrow": "Arrow",
    "images": "zip or tar",
}
"""The formats' names for people."""


def format_by_name(name: str) -> Source:
    """Return a file's format by its name.

    Raises:
        BadInput: the suffix is unknown.
    """
    source = SUFFIXES.get(Path(name).suffix.lower())
    if source is None:
        raise _bad_upload(f"{name!r}: the file name must end in one of {', '.join(SUFFIXES)}")
    return source


def format_label(source: str) -> str:
    """Return a format's label."""
    return next((label for name, label in LABELS.items() if name == source), source)


def format_of_upload(path: Path, name: str) -> Source:
    """Return an upload's format. Image archives are known by their content, whatever their name.

    Args:
        path: the uploaded bytes.
        name: the file name given by the user.

    Raises:
        BadInput: the suffix is unknown, the file is empty, or its content does not match the suffix.
    """
    with path.open("rb") as file:
        head = file.read(_HEAD)
        file.seek(max(path.stat().st_size - len(_PARQUET), 0))
        tail = file.read()
    if not head:
        raise _bad_upload(f"{name!r} is empty")
    if Path(name).suffix.lower() not in SUFFIXES and _is_archive(head):
        return "images"
    source = format_by_name(name)
    if not _matches(source, head, tail):
        raise _bad_upload(f"{name!r} does not contain {LABELS[source]} data")
    return source


def _is_archive(head: bytes) -> bool:
    return head.startswith((_ZIP, _EMPTY_ZIP, _GZIP)) or head[_TAR_PLACE:].startswith(_TAR)


def check_keras(path: Path) -> None:
    """Check that an upload begins as a `.keras` file does, and is no SavedModel in an archive.

    Raises:
        BadInput: it does not; for other formats of models, the message states how to convert them.
    """
    with path.open("rb") as file:
        head = file.read(_HEAD)
        file.seek(max(path.stat().st_size - _HEAD, 0))
        tail = file.read()
    if (advice := how_to_convert(head, tail)) is not None:
        raise _bad_upload(advice)
    if not head.startswith(_ZIP):
        example = STORED.file_name("name")
        raise _bad_upload(
            f"The file is not a {STORED.suffix} archive; save the model with model.save({example!r})"
        )


def check_sample(path: Path) -> None:
    """Check that rows for a model are as small as a few rows are, and begin as NPZ or JSON does.

    Raises:
        BadInput: they do not.
    """
    size = path.stat().st_size
    with path.open("rb") as file:
        start = file.read(_HEAD).lstrip(b"\xef\xbb\xbf \t\r\n")
    message = ""
    if size > MAX_SAMPLE_BYTES:
        message = f"The sample has {size:,} bytes, but at most {MAX_SAMPLE_BYTES:,} are read: send fewer rows"
    elif not start.startswith((_ZIP, b"{", b"[")):
        message = (
            "The sample is neither NPZ nor JSON: write it with numpy.savez, one array for each input, or as "
            '{"instances": [row, …]}'
        )
    if message:
        raise BadInput(message, [Problem("/sample", message)])


def _matches(source: Source, head: bytes, tail: bytes) -> bool:
    match source:
        case "npz":
            return head.startswith(_ZIP)
        case "npy":
            return head.startswith(_NPY)
        case "arrow":
            return head.startswith(_ARROW)
        case "images":
            return _is_archive(head)
        case "parquet":
            # The format ends with the same bytes, so an incomplete upload is found here.
            return head.startswith(_PARQUET) and tail == _PARQUET
    if head.startswith((_ZIP, _PARQUET, _NPY, _ARROW[0])):
        return False
    encoding = encoding_of(head, is_all=False)
    return encoding == "utf-16" or b"\0" not in head


def _bad_upload(message: str) -> BadInput:
    return BadInput(message, [Problem("/file", message)])
