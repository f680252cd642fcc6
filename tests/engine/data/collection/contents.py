"""The table of most cases about files, and the bytes of files in several formats."""

import io
import tarfile
import zipfile
from collections.abc import Sequence
from functools import partial
from typing import Any

import openpyxl
import pandas as pd
import pyarrow as pa
from openpyxl.worksheet.worksheet import Worksheet

from tests.engine.data.collection.case import ExpectedColumn, TableCase, csv_rows

PLAIN = csv_rows("a,b,y", "1,x,0", "2,z,1", "3,x,0")
READ = {
    "a": ExpectedColumn("integer", "feature", values=(1, 2, 3)),
    "b": ExpectedColumn("category", "feature", values=("x", "z", "x")),
    "y": ExpectedColumn("integer", "target", values=(0, 1, 0)),
}
INDEX = ExpectedColumn("integer", "id")
case = partial(TableCase, source=None)
FRAME = pd.DataFrame({"a": [1, 2, 3], "b": ["x", "z", "x"], "y": [0, 1, 0]})


def zstd(body: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(body)
    return bytes(sink.getvalue())


def zipped(hidden: str = "", **files: bytes) -> bytes:
    """Return a zip archive; in its names, __ is a slash and _ is a point.

    Args:
        hidden: the name of one more file.
        files: the others.
    """
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        if hidden:
            archive.writestr(hidden, b"hidden")
        for name, body in files.items():
            archive.writestr(name.replace("__", "/").replace("_", "."), body)
    return target.getvalue()


def tarred(name: str, body: bytes, mode: Any = "w:gz") -> bytes:
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode=mode) as archive:
        member = tarfile.TarInfo(name)
        member.size = len(body)
        archive.addfile(member, io.BytesIO(body))
    return target.getvalue()


def workbook(*rows: Sequence[Any], other: Sequence[Sequence[Any]] = ()) -> bytes:
    """Return a workbook with a sheet Data, and a sheet Other if it has rows."""
    book = openpyxl.Workbook()
    sheet = book.active
    assert isinstance(sheet, Worksheet)
    sheet.title = "Data"
    for row in rows:
        sheet.append(list(row))
    if other:
        sheet = book.create_sheet("Other")
        for row in other:
            sheet.append(list(row))
    target = io.BytesIO()
    book.save(target)
    return target.getvalue()


def parquet(frame: pd.DataFrame) -> bytes:
    target = io.BytesIO()
    frame.to_parquet(target)
    return target.getvalue()
