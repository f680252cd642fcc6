"""Detects an uploaded file's format from its name and its first and last bytes."""

import re
from pathlib import Path
from typing import Literal

from jobs.errors import BadInput
from jobs.model_formats import how_to_convert
from jobs.spec.data.encodings import is_text
from jobs.spec.data.foreign_formats import foreign_by_content, foreign_by_name
from jobs.spec.exports import STORED
from jobs.spec.problems import Problem

Source = Literal["csv", "json_lines", "npz", "npy", "parquet", "arrow", "xlsx", "images"]
SUFFIXES: dict[str, Source] = {
    ".csv": "csv",
    ".tsv": "csv",
    ".tab": "csv",
    ".txt": "csv",
    ".dat": "csv",
    ".data": "csv",
    ".json": "json_lines",
    ".jsonl": "json_lines",
    ".ndjson": "json_lines",
    ".npz": "npz",
    ".npy": "npy",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".xlsx": "xlsx",
    ".xlsm": "xlsx",
    ".xls": "xlsx",
    ".zip": "images",
    ".tar": "images",
    ".tgz": "images",
    ".gz": "images",
    ".bz2": "images",
    ".xz": "images",
    ".zst": "images",
}
"""Formats by the end of a name. A worker finds out whether an archive or a compressed file has a table. Many
programs write other formats under the name of old workbooks."""
COMPRESSED: tuple[str, ...] = (".gz", ".bz2", ".xz", ".zst")
_ZIP, _PARQUET, _NPY = b"PK\x03\x04", b"PAR1", b"\x93NUMPY"
_ARROW = (b"ARROW1", b"\xff\xff\xff\xff")
"""The first bytes in an Arrow file and in an Arrow stream."""
_EMPTY_ZIP, _TAR, _TAR_PLACE = b"PK\x05\x06", b"ustar", 257
COMPRESSIONS: dict[bytes, str] = {
    b"\x1f\x8b": "gzip",
    b"BZh": "bzip2",
    b"\xfd7zXZ\x00": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
}
"""The first bytes of compressed files, with the names of the methods."""
_JSON = re.compile(rb"\s*(\[\s*)?\{\s*(\"(?:[^\"\\\n]|\\.)*\"\s*:|\})")
_WORKBOOK = (b"[Content_Types].xml", b"xl/", b"_rels/.rels", b"docProps/")
"""Names of the first member of a workbook."""
_GENERAL = (".dat", ".data")
"""Ends of the names of files with any content."""
_HEAD = 65_536
LABELS: dict[Source, str] = {
    "csv": "CSV",
    "json_lines": "JSON Lines",
    "npz": "NPZ",
    "npy": "NPY",
    "parquet": "Parquet",
    "arrow": "Arrow",
    "xlsx": "workbook",
    "images": "zip or tar",
}
"""The formats' names for people."""


def format_by_name(name: str) -> Source:
    """Return a file's format by its name. In `people.csv.gz`, the name before the compression decides.

    Raises:
        BadInput: the suffix is unknown.
    """
    path = Path(name)
    if path.suffix.lower() in COMPRESSED and Path(path.stem).suffix.lower() in SUFFIXES:
        path = Path(path.stem)
    source = SUFFIXES.get(path.suffix.lower())
    if source is None:
        if refusal := foreign_by_name(path.name):
            raise _bad_upload(refusal)
        raise _bad_upload(f"{name!r}: the file name must end in one of {', '.join(SUFFIXES)}")
    return source


def format_label(source: str) -> str:
    """Return a format's label."""
    return next((label for name, label in LABELS.items() if name == source), source)


def format_of_upload(path: Path, name: str) -> Source:
    """Return an upload's format. Most are known by their content, whatever their name.

    Args:
        path: the uploaded bytes.
        name: the file name given by the user.

    Raises:
        BadInput: the suffix is unknown, the file is empty, its content does not match the suffix, or it is in
            a format that is not read.
    """
    with path.open("rb") as file:
        head = file.read(_HEAD)
        file.seek(max(path.stat().st_size - len(_PARQUET), 0))
        tail = file.read()
    if not head:
        raise _bad_upload(f"{name!r} is empty")
    if refusal := foreign_by_content(name, head):
        raise _bad_upload(refusal)
    source = _source_of(name, head)
    if not _matches(source, head, tail):
        raise _bad_upload(f"{name!r} does not contain {LABELS[source]} data{_instead(head)}")
    return source


def _source_of(name: str, head: bytes) -> Source:
    """Return the format of a file by its content, or by its name if several formats have such content."""
    suffix = Path(name).suffix.lower()
    found = format_by_content(head)
    if compression_of(head) is not None:
        if suffix not in SUFFIXES and (refusal := foreign_by_name(name)):
            raise _bad_upload(refusal)
        # The compressed file itself is only seen by a worker.
        return format_by_name(name) if suffix in SUFFIXES and suffix not in _GENERAL else "images"
    if found in ("xlsx", "images") and (refusal := foreign_by_name(name)):
        raise _bad_upload(refusal)
    if found is None and suffix == ".xls" and is_text(head):
        return "csv"
    if found is None or (found == "json_lines" and SUFFIXES.get(suffix) not in ("csv", "xlsx")):
        return format_by_name(name)
    return found


def format_by_content(head: bytes) -> Source | None:
    """Return the format of a file with these first bytes; None if the name decides."""
    if head.startswith(_ZIP):
        name = head[30 : 30 + int.from_bytes(head[26:28], "little")]
        if name.startswith(_WORKBOOK):
            return "xlsx"
        return "npz" if name.endswith(b".npy") else "images"
    if compression_of(head) is not None or head.startswith(_EMPTY_ZIP) or head[_TAR_PLACE:].startswith(_TAR):
        return "images"
    if head.startswith(_PARQUET):
        return "parquet"
    if head.startswith(_ARROW[0]):
        return "arrow"
    if head.startswith(_NPY):
        return "npy"
    return "json_lines" if _JSON.match(head.removeprefix(b"\xef\xbb\xbf")) else None


def compression_of(head: bytes) -> str | None:
    """Return the method of compression of a file with these first bytes; None if it is not compressed."""
    return next((method for begin, method in COMPRESSIONS.items() if head.startswith(begin)), None)


def _instead(head: bytes) -> str:
    """Return a clause with the format that the content has, if it is known."""
    found = format_by_content(head)
    return f"; it seems to be a {LABELS[found]} file, so give it the name of one" if found is not None else ""


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


def _matches(source: Source, head: bytes, tail: bytes) -> bool:
    if compression_of(head) is not None:
        # Its content is checked by the worker that unpacks it.
        return True
    match source:
        case "npz" | "xlsx":
            return head.startswith(_ZIP)
        case "npy":
            return head.startswith(_NPY)
        case "arrow":
            return head.startswith(_ARROW)
        case "images":
            return format_by_content(head) == "images"
        case "parquet":
            # The format ends with the same bytes, so an incomplete upload is found here.
            return head.startswith(_PARQUET) and tail == _PARQUET
    return format_by_content(head) in (None, "json_lines") and is_text(head)


def _bad_upload(message: str) -> BadInput:
    return BadInput(message, [Problem("/file", message)])
