"""Finds the table in an upload: unpacks it, takes it out of an archive, and writes workbooks as text."""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from jobs.spec.data.dialect import SAMPLE_BYTES, DialectRequest
from jobs.spec.data.encodings import codec_of, encoding_of, is_text
from jobs.spec.data.file_description import FileDescription
from jobs.spec.data.file_limits import FileLimits
from jobs.spec.data.foreign_formats import foreign_by_content
from jobs.upload_formats import COMPRESSED, LABELS, Source, compression_of, format_by_content
from workers.engine.data.reading.archives.decompression import first_bytes, unpack_file
from workers.engine.data.reading.archives.tables import archived_tables
from workers.engine.data.reading.damage import reading
from workers.engine.data.reading.json_document import write_lines
from workers.engine.data.reading.pandas_index import frame_columns
from workers.engine.data.reading.plain_text import plain_text
from workers.engine.data.reading.workbook import write_sheet
from workers.engine.errors import BadData
from workers.system.archives import TAR_MARK, TAR_PLACE

WORKBOOK = "Excel workbook"
MAX_DEPTH = 3
"""A compressed file in an archive, whose content is a workbook."""
SHOWN = 10


@dataclass(frozen=True)
class PlainFile:
    """A file in a format that a reader knows.

    Attributes:
        path: the file, or the one found in it.
        source: its format.
        request: how its text is read.
        description: its format, and the place of the table in it.
        findings: sentences on the parts that were left out.
    """

    path: Path
    source: Source
    request: DialectRequest
    description: FileDescription
    findings: tuple[str, ...] = ()


def plain_files(
    path: Path, source: Source, request: DialectRequest, limits: FileLimits, folder: Path
) -> list[PlainFile]:
    """Return the file, or the files, that an upload consists of.

    Args:
        path: the upload.
        source: its format by its name, or by its first bytes.
        request: how its text is read.
        limits: how many bytes it may have when it is unpacked.
        folder: a new folder for unpacked files.

    Raises:
        BadData: it is in a format that is not read, has several tables, or is too large.
        DamagedFile: it is damaged.
    """
    folder.mkdir()
    return _found(PlainFile(path, source, request, FileDescription(format="")), limits, folder, 0)


def _found(file: PlainFile, limits: FileLimits, folder: Path, depth: int) -> list[PlainFile]:
    if depth > MAX_DEPTH:
        raise BadData(f"{file.path.name} is packed more than {MAX_DEPTH} times; unpack it before the upload")
    if file.source == "npz":
        # Its arrays need not come first.
        return [_converted(file, limits, folder)]
    with file.path.open("rb") as opened:
        head = opened.read(SAMPLE_BYTES)
    if method := compression_of(head):
        if method == "gzip" and _is_tar(first_bytes(file.path, method, TAR_PLACE + len(TAR_MARK))):
            return _in_archive(file, "tar.gz", limits, folder, depth)
        return _found(
            _unpacked(file, method, limits, folder / f"unpacked-{depth}"), limits, folder, depth + 1
        )
    if _is_tar(head):
        return _in_archive(file, "tar", limits, folder, depth)
    content = format_by_content(head)
    if content == "images":
        return _in_archive(file, "zip", limits, folder, depth)
    if refusal := foreign_by_content(file.path.name, head):
        raise BadData(refusal)
    if content is None:
        content = file.source if file.source not in ("images", "xlsx") or not is_text(head) else "csv"
        if content == "images" and depth:
            raise BadData(f"{file.path.name}, which was unpacked, is in no format that is read")
    return [_converted(replace(file, source=content), limits, folder)]


def _is_tar(head: bytes) -> bool:
    return head[TAR_PLACE : TAR_PLACE + len(TAR_MARK)] == TAR_MARK


def _unpacked(file: PlainFile, method: str, limits: FileLimits, folder: Path) -> PlainFile:
    folder.mkdir()
    name = file.path.name
    target = folder / (Path(name).stem if Path(name).suffix.lower() in COMPRESSED else name)
    unpack_file(file.path, method, target, limits.of_large_tables())
    if not target.stat().st_size:
        raise BadData(f"{name} is empty")
    description = file.description.model_copy(update={"compression": method})
    return replace(file, path=target, description=description)


def _in_archive(file: PlainFile, kind: str, limits: FileLimits, folder: Path, depth: int) -> list[PlainFile]:
    """Return the tables in an archive, or the archive itself if it has images."""
    inside = folder / f"archive-{depth}"
    inside.mkdir()
    members = archived_tables(file.path, inside, limits)
    if members is None:
        description = file.description.model_copy(update={"format": f"images in a {kind} archive"})
        return [replace(file, source="images", description=description)]
    found = []
    for number, (name, path) in enumerate(members):
        description = file.description.model_copy(update={"archive": kind, "members": (name,)})
        part = folder / f"member-{depth}-{number}"
        part.mkdir()
        found += _found(
            replace(file, path=path, source="images", description=description), limits, part, depth + 1
        )
    return found if len(found) == 1 else _parts_of_one_table(file.path.name, found, limits)


def _parts_of_one_table(name: str, files: Sequence[PlainFile], limits: FileLimits) -> list[PlainFile]:
    """Return the files of an archive if they have the same columns.

    Raises:
        BadData: they have not.
    """
    members = [member for file in files for member in file.description.members]
    shown = ", ".join(members[:SHOWN]) + (f" and {len(members) - SHOWN} more" if len(members) > SHOWN else "")
    if len({(file.source, _columns_of(file, limits)) for file in files}) > 1:
        raise BadData(
            f"{name} has {len(files)} tables with different columns: {shown}. Unpack it, and upload the one "
            "to learn from, or those together that are parts of one"
        )
    finding = (
        f"The {len(files)} files of the archive have the same columns and were read as one table: {shown}."
    )
    first, *others = files
    description = first.description.model_copy(update={"members": tuple(members)})
    return [replace(first, description=description, findings=(finding, *first.findings)), *others]


def _columns_of(file: PlainFile, limits: FileLimits) -> frozenset[str]:
    with reading(file.path, LABELS[file.source]):
        match file.source:
            case "csv":
                text = plain_text(file.path, file.request, limits, file.path.parent, whole=False)
                return frozenset(text.header.names)
            case "parquet":
                import pyarrow.parquet as pq

                return frozenset(frame_columns(pq.read_schema(file.path)).header.names)
            case _:
                # These readers compare the columns themselves.
                return frozenset()


def _as_utf8(path: Path, folder: Path) -> Path:
    """Return a file of JSON in UTF-8: some shells write UTF-16."""
    with path.open("rb") as file:
        start = file.read(SAMPLE_BYTES)
    if (encoding := encoding_of(start, is_all=False)) == "utf-8":
        return path
    copy = folder / f"utf-8 {path.name}"
    with (
        path.open(encoding=codec_of(encoding, start), newline="") as source,
        copy.open("w", encoding="utf-8", newline="") as target,
    ):
        shutil.copyfileobj(source, target)
    return copy


def _converted(file: PlainFile, limits: FileLimits, folder: Path) -> PlainFile:
    """Return a file as text or lines if its format is read so."""
    described: dict[str, Any] = {"format": LABELS[file.source]}
    if file.source == "xlsx":
        target = folder / "sheet" / file.path.name
        target.parent.mkdir()
        sheet = write_sheet(file.path, target, file.request.sheet, limits)
        described = {"format": WORKBOOK, "sheet": sheet.name}
        request = file.request.model_copy(update={"delimiter": ",", "encoding": "utf-8", "decimal": "."})
        file = replace(
            file, path=target, source="csv", request=request, findings=(*file.findings, *sheet.findings)
        )
    elif file.source == "json_lines":
        target = folder / "lines" / file.path.name
        target.parent.mkdir()
        with reading(file.path, "JSON"):
            file = replace(file, path=_as_utf8(file.path, target.parent))
            findings = write_lines(file.path, target, limits)
        if findings is not None:
            described = {"format": "JSON"}
            file = replace(file, path=target, findings=(*file.findings, *findings))
    return replace(file, description=file.description.model_copy(update=described))
