"""Small uploads that unpack to huge ones are refused by their size, in little memory and on little disk."""

import bz2
import gzip
import io
import lzma
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from jobs.spec.data.dialect import DialectRequest
from jobs.spec.data.file_limits import FileLimits
from jobs.upload_formats import Source
from tests.engine.data.collection.contents import tarred, workbook, zstd
from workers.engine.data.reading.archives import decompression
from workers.engine.data.reading.archives.unpacking import PlainFile, plain_files
from workers.engine.data.table import read_npz
from workers.engine.errors import BadData

LIMIT = 200_000
LIMITS = FileLimits(expanded_bytes=LIMIT, table_bytes=LIMIT)
ROWS = b"a,b\n" + b"1,2\n" * 1_000_000
COMPRESSIONS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "zstd": zstd,
}


def unpacked(tmp_path: Path, body: bytes, source: Source = "csv") -> list[PlainFile]:
    path = tmp_path / "upload"
    path.write_bytes(body)
    return plain_files(path, source, DialectRequest(), LIMITS, tmp_path / "unpacked")


def written_bytes(tmp_path: Path) -> int:
    return sum(path.stat().st_size for path in (tmp_path / "unpacked").rglob("*") if path.is_file())


@pytest.mark.parametrize("method", COMPRESSIONS)
def test_a_compressed_file_is_unpacked_up_to_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    monkeypatch.setattr(decompression, "CHUNK_BYTES", 10_000)
    packed = COMPRESSIONS[method](ROWS)
    assert len(packed) < LIMIT
    with pytest.raises(BadData, match=f"unpacks to more than {LIMIT:,} bytes"):
        unpacked(tmp_path, packed)
    assert written_bytes(tmp_path) <= LIMIT


@pytest.mark.parametrize("method", COMPRESSIONS)
def test_a_compressed_file_that_is_compressed_again_and_again_is_refused(tmp_path: Path, method: str) -> None:
    packed = b"a,b\n1,2\n"
    for _ in range(6):
        packed = COMPRESSIONS[method](packed)
    with pytest.raises(BadData, match="packed more than 3 times"):
        unpacked(tmp_path, packed)


def test_a_decoder_of_xz_that_wants_much_memory_is_refused(tmp_path: Path) -> None:
    filters = [{"id": lzma.FILTER_LZMA2, "dict_size": 1 << 29}]
    # The begin states the size of the dictionary, and the decoder allocates it.
    packed = lzma.compress(b"a,b\n1,2\n", filters=filters)
    with pytest.raises(BadData, match="not a readable xz file: Memory usage limit"):
        unpacked(tmp_path, packed)


def zipped(name: str, body: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, body)
    return file.getvalue()


@pytest.mark.parametrize(
    "packed", [zipped("train.csv", ROWS), tarred("train.csv", ROWS)], ids=["zip", "tar.gz"]
)
def test_a_table_in_an_archive_is_refused_before_it_is_unpacked(tmp_path: Path, packed: bytes) -> None:
    with pytest.raises(BadData, match="bytes"):
        unpacked(tmp_path, packed, "images")
    assert written_bytes(tmp_path) == 0


def sheet(content: bytes) -> bytes:
    """Return a workbook with a sheet of these rows, in XML."""
    with zipfile.ZipFile(io.BytesIO(workbook(["a", "y"], [1, 2]))) as book:
        members = {name: book.read(name) for name in book.namelist()}
    namespace = b"http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    members["xl/worksheets/sheet1.xml"] = (
        b'<worksheet xmlns="' + namespace + b'"><sheetData>' + content + b"</sheetData></worksheet>"
    )
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as book:
        for name, body in members.items():
            book.writestr(name, body)
    return file.getvalue()


CELLS = {
    "large parts": (b"<row>" + b" " * 3 * LIMIT + b"</row>", "expands to"),
    "many cells in a row": (b"<row>" + b"<c/>" * 20_000 + b"</row>", "expands to"),
    "cells with a prefix": (b'<row xmlns:p="x">' + b"<p:c/>" * 20_000 + b"</row>", "expands to"),
    "a cell at the end of each row": (b'<row><c r="XFD1"><v>1</v></c></row>' * 2_000, "expands to"),
    "a row far below": (
        b'<row r="1"><c><v>1</v></c></row><row r="99999999999"><c><v>1</v></c></row>',
        "expands to",
    ),
}


@pytest.mark.parametrize("case", CELLS)
def test_a_workbook_with_more_cells_than_fit_into_memory_is_refused(tmp_path: Path, case: str) -> None:
    content, message = CELLS[case]
    with pytest.raises(BadData, match=message):
        unpacked(tmp_path, sheet(content), "xlsx")


@pytest.mark.parametrize("source", ["npz", "xlsx"])
def test_an_archive_whose_decoder_may_want_much_memory_is_refused(tmp_path: Path, source: Source) -> None:
    path = tmp_path / "upload"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("xl/workbook.xml" if source == "xlsx" else "x.npy", b"x")
    with pytest.raises(BadData, match="is compressed by another method than deflate"):
        if source == "npz":
            read_npz(path)
        else:
            plain_files(path, source, DialectRequest(), LIMITS, tmp_path / "unpacked")


def test_a_workbook_whose_entities_expand_is_refused(tmp_path: Path) -> None:
    nested = b"".join(b'<!ENTITY e%d "%s">' % (i, b"&e%d;" % (i - 1) * 10) for i in range(1, 12))
    bomb = b'<!DOCTYPE x [<!ENTITY e0 "ha">' + nested + b"]>"
    with zipfile.ZipFile(io.BytesIO(sheet(b"<row><c t='str'><v>&e11;</v></c></row>"))) as book:
        members = {name: book.read(name) for name in book.namelist()}
    members["xl/worksheets/sheet1.xml"] = bomb + members["xl/worksheets/sheet1.xml"]
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as book:
        for name, body in members.items():
            book.writestr(name, body)
    with pytest.raises(BadData, match="is not a readable Excel file"):
        unpacked(tmp_path, file.getvalue(), "xlsx")


@pytest.mark.parametrize(
    "body",
    [b"[" + b"[1]," * 20_000 + b"[1]]", b'{"a": [' + b"1," * 20_000 + b'1], "y": []}'],
    ids=["arrays", "columns"],
)
def test_a_json_document_whose_values_take_more_memory_than_its_bytes_is_refused(
    tmp_path: Path, body: bytes
) -> None:
    with pytest.raises(BadData, match="expands to"):
        unpacked(tmp_path, body, "json_lines")


def test_texts_without_an_end_are_searched_once(tmp_path: Path) -> None:
    with pytest.raises(BadData, match="it ends within an object"):
        unpacked(tmp_path, b'[{"a": "' + b'\\"' * 90_000, "json_lines")
