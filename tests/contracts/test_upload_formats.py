"""Formats of uploads follow from content and name; others are named with what to do."""

import gzip
import io
import zipfile
from pathlib import Path

import pytest

from jobs.errors import BadInput
from jobs.upload_formats import format_by_name, format_of_upload

CSV = b"a,b\n1,2\n"


def zipped(*names: str) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name in names:
            archive.writestr(name, b"x")
    return file.getvalue()


@pytest.mark.parametrize(
    ("name", "content", "source"),
    [
        ("a.csv", CSV, "csv"),
        ("a.data", CSV, "csv"),
        ("a.csv.gz", gzip.compress(CSV, mtime=0), "csv"),
        ("a.CSV.GZ", gzip.compress(CSV, mtime=0), "csv"),
        ("a.parquet.zst", b"\x28\xb5\x2f\xfd", "parquet"),
        ("a.gz", gzip.compress(CSV, mtime=0), "images"),
        ("a.tar.gz", gzip.compress(CSV, mtime=0), "images"),
        ("a.zip", zipped("train.csv"), "images"),
        ("a.xlsx", zipped("[Content_Types].xml"), "xlsx"),
        ("a.csv", zipped("xl/workbook.xml"), "xlsx"),
        ("a.xls", zipped("[Content_Types].xml"), "xlsx"),
        ("a.xls", CSV, "csv"),
        # Searched for a script behind blanks, in ways whose number must not double with each blank.
        ("blanks.csv", b" \n" * 20_000 + CSV, "csv"),
        ("comments.csv", b"-- \n/* */% \n" * 2_000 + CSV, "csv"),
        ("a.zip", zipped("x.npy"), "npz"),
        ("a.json", b'[{"a": 1}]', "json_lines"),
        ("a.txt", b'{"a": 1}\n{"a": 2}\n', "json_lines"),
        ("a.csv", b"[id],[name]\n1,2\n", "csv"),
        ("a.csv", b"{x},y\n1,2\n", "csv"),
        ("a.csv", b"ORCID,y\n1,2\n", "csv"),
        ("a.csv", b"FEA1,FEA2\n1,2\n", "csv"),
        ("a.txt", b"1 10:30\n2 10:45\n", "csv"),
        ("a.csv", "a,b\nя,2\n".encode("utf-16-be"), "csv"),
        ("a.csv", b"a,b\nx\0\0,2\ny,2\n", "csv"),
    ],
)
def test_the_format_is_known_by_content_and_name(
    tmp_path: Path, name: str, content: bytes, source: str
) -> None:
    (tmp_path / "upload").write_bytes(content)
    assert format_of_upload(tmp_path / "upload", name) == source


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", b"SQLite format 3\0", "an SQLite database"),
        ("a.csv", b"\x89HDF\r\n\x1a\n", "HDF5"),
        ("a.feather", b"FEA1\0\0\0\0", "Feather in its first version"),
        ("a.csv", b"ORC\x0a\x0b\x00\x01", "ORC"),
        ("a.txt", b"% about\n\n@RELATION x\n", "ARFF"),
        ("a.csv", bytes(12) + b"\xc2\xea\x81\x60\xb3\x14\x11\xcf" + bytes(20), "SAS"),
        ("a.csv", b"$FL2@(#)", "SPSS"),
        ("a.csv", b"<stata_dta><header>", "Stata"),
        ("a.dta", b"\x72\x02\x01\x00", "Stata"),
        ("a.csv", b"\xef\xbb\xbf\n<!DOCTYPE html>\n<html>", "a page of HTML, not the data"),
        ("a.parquet", b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "git lfs pull"),
        ("a.csv", b"<?xml version='1.0'?>\n<Error><Code>AccessDenied</Code></Error>", "(AccessDenied)"),
        ("a.csv", b"<?xml version='1.0'?><rows/>", "XML"),
        ("a.csv", b"\x80\x04\x95", "a pickle, which can run code"),
        ("a.csv", b"%PDF-1.7", "PDF"),
        ("a.csv", b"1 1:0.5 7:2\n", "LIBSVM"),
        ("a.jpg", b"\xff\xd8\xff\xe0", "one image"),
        ("a.xls", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "save it as .xlsx"),
        ("a.ods", zipped("mimetype"), "an OpenDocument spreadsheet"),
        ("a.xlsb", zipped("[Content_Types].xml"), "a binary Excel workbook"),
        ("a.docx", zipped("[Content_Types].xml"), "a Word document"),
        ("a.rds", gzip.compress(b"X\n", mtime=0), "write.csv(data, 'data.csv', row.names = FALSE)"),
        ("a.tfrecord", b"\x10\0\0\0", "TFRecord"),
        ("a.zip", CSV, "does not contain zip or tar data"),
        ("a.parquet", CSV, "does not contain Parquet data"),
        ("a.parquet", b"PAR1 cut", "does not contain Parquet data"),
        ("a.npy", gzip.compress(CSV, mtime=0)[:1] + b"x", "does not contain NPY data"),
        ("a.unknown", CSV, "must end in one of"),
        ("a.csv", b"a,b\n\2\3\4", "does not contain CSV data"),
        ("a.csv", b"", "is empty"),
    ],
)
def test_a_format_that_is_not_read_is_named_with_a_remedy(
    tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    (tmp_path / "upload").write_bytes(content)
    with pytest.raises(BadInput) as refusal:
        format_of_upload(tmp_path / "upload", name)
    assert message in refusal.value.message
    assert repr(name) in refusal.value.message


def test_the_name_alone_is_refused_before_the_upload() -> None:
    with pytest.raises(BadInput, match="is Stata, which is not read"):
        format_by_name("people.dta")
    assert format_by_name("people.csv.xz") == "csv"
