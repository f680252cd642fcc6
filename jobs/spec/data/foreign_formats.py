"""Names files in formats that are not read, with what to do instead.

Most are known by their first bytes, whatever their name; some by the end of their name.
"""

import re
from pathlib import Path

_IMAGES = "put the images into folders, one for each class, and these into a zip"
_SVM = "write it as NPZ, for example by sklearn.datasets.load_svmlight_file and numpy.savez"
_TABLE = "save the table itself as CSV or a workbook (.xlsx)"
_SQL = "load it into a database, and write the table as CSV or Parquet"
_CDF = "write it as Parquet, for example by xarray.open_dataset(…).to_dataframe()"
_R = "write it in R by write.csv(data, 'data.csv', row.names = FALSE)"
_FRAME = "write it as Parquet (in pandas: {read}(…).to_parquet('data.parquet')) and upload that"


def _by_pandas(read: str) -> str:
    return _FRAME.format(read=f"pandas.{read}")


_BEGINS: tuple[tuple[bytes, str, str], ...] = (
    (b"SQLite format 3\0", "an SQLite database", _by_pandas("read_sql")),
    (b"\x89HDF\r\n\x1a\n", "HDF5", _by_pandas("read_hdf") + ", or its arrays as NPZ"),
    (b"FEA1\0", "Feather in its first version", _by_pandas("read_feather")),
    (b"Obj\x01", "Avro", "write it as Parquet and upload that"),
    (b"$FL2", "SPSS", _by_pandas("read_spss")),
    (b"$FL3", "SPSS", _by_pandas("read_spss")),
    (b"<stata_dta>", "Stata", _by_pandas("read_stata")),
    (b"HEADER RECORD*******LIBRARY HEADER", "SAS Transport", _by_pandas("read_sas")),
    (b"RDX2\n", "R data", _R),
    (b"RDX3\n", "R data", _R),
    (b"MATLAB 5.0 MAT-file", "MATLAB", "write its arrays by scipy.io.loadmat and numpy.savez"),
    (b"\xff\xfe\0\0", "text in UTF-32", "save it as UTF-8"),
    (b"\0\0\xfe\xff", "text in UTF-32", "save it as UTF-8"),
    (b"PGDMP", "a dump of PostgreSQL", _SQL),
    (b"\0\1\0\0Standard Jet DB", "an Access database", _by_pandas("read_sql")),
    (b"\0\1\0\0Standard ACE DB", "an Access database", _by_pandas("read_sql")),
    (b"CDF\1", "netCDF", _CDF),
    (b"CDF\2", "netCDF", _CDF),
    (b"SIMPLE  =", "FITS", "write its table as Parquet (by astropy: Table.read(…).to_pandas())"),
    (b"%PDF-", "PDF", _TABLE),
    (b"7z\xbc\xaf'\x1c", "a 7z archive", "unpack it, or pack it as zip"),
    (b"Rar!\x1a\x07", "a RAR archive", "unpack it, or pack it as zip"),
    (b"\x04\x22\x4d\x18", "LZ4", "compress it by gzip or zstd instead"),
    (b"\x1f\x9d", "compress (.Z)", "compress it by gzip or zstd instead"),
    (b"\x89PNG\r\n\x1a\n", "one image", _IMAGES),
    (b"\xff\xd8\xff", "one image", _IMAGES),
    (b"GIF8", "one image", _IMAGES),
    (
        b"version https://git-lfs.github.com/spec/",
        "a pointer of Git LFS, not the file itself",
        "run `git lfs pull` in the repository, or download the file itself",
    ),
)
_ORC = re.compile(rb"ORC[^,;\t|]{0,8}[\x00-\x08\x0b\x0c\x0e-\x1f]", re.DOTALL)
_SAS = b"\0" * 12 + b"\xc2\xea\x81\x60\xb3\x14\x11\xcf"
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_OLD_STATA = re.compile(rb"[\x69\x6c\x6e\x71\x72\x73][\x01\x02]\x01\x00")
_PICKLE = re.compile(rb"\x80[\x02-\x05].")
_HTML = re.compile(rb"\s*<(!doctype\s+html|html|head|body|table|script)\b", re.IGNORECASE)
_XML = re.compile(rb"\s*<\?xml\b|\s*<Error>")
_CODE = re.compile(rb"<Error>.{0,200}?<Code>(\w+)</Code>", re.DOTALL)
_ARFF = re.compile(rb"(?:\s|%[^\n]*\n)*+@relation\b", re.IGNORECASE)
_SQL_SCRIPT = re.compile(
    rb"(?:\s|--[^\n]*\n|/\*.*?\*/;?)*+"
    rb"(INSERT\s+INTO\s|(CREATE|DROP|LOCK|ALTER)\s+(TABLE|DATABASE|SCHEMA)S?\s|PRAGMA\s+\w+\s*="
    rb"|SET\s+@?\w+\s*=|USE\s+`)",
    re.IGNORECASE | re.DOTALL,
)
_LIBSVM = re.compile(rb"[-+]?\d+(\.\d+)?(,\d+)*( +\d+:[-+]?[\d.]+(e[-+]?\d+)?){2,}\s*\n", re.IGNORECASE)
_SUFFIXES: dict[str, tuple[str, str]] = {
    ".xlsb": ("a binary Excel workbook", "save it as .xlsx or CSV"),
    ".ods": ("an OpenDocument spreadsheet", "save it as .xlsx or CSV"),
    ".numbers": ("a workbook of Numbers", "export it as .xlsx or CSV"),
    ".db": ("a database", _by_pandas("read_sql")),
    ".sqlite": ("an SQLite database", _by_pandas("read_sql")),
    ".sqlite3": ("an SQLite database", _by_pandas("read_sql")),
    ".duckdb": ("a DuckDB database", "write the table by COPY … TO 'data.parquet' and upload that"),
    ".h5": ("HDF5", _by_pandas("read_hdf") + ", or its arrays as NPZ"),
    ".hdf5": ("HDF5", _by_pandas("read_hdf") + ", or its arrays as NPZ"),
    ".hdf": ("HDF5", _by_pandas("read_hdf") + ", or its arrays as NPZ"),
    ".sql": ("an SQL script", _SQL),
    ".mdb": ("an Access database", _by_pandas("read_sql")),
    ".accdb": ("an Access database", _by_pandas("read_sql")),
    ".nc": ("netCDF", _CDF),
    ".orc": ("ORC", _by_pandas("read_orc")),
    ".avro": ("Avro", "write it as Parquet and upload that"),
    ".arff": ("ARFF", "write it as CSV, for example by scipy.io.arff.loadarff and pandas"),
    ".sas7bdat": ("SAS", _by_pandas("read_sas")),
    ".xpt": ("SAS Transport", _by_pandas("read_sas")),
    ".sav": ("SPSS", _by_pandas("read_spss")),
    ".zsav": ("SPSS", _by_pandas("read_spss")),
    ".dta": ("Stata", _by_pandas("read_stata")),
    ".rds": ("R data", _R),
    ".rda": ("R data", _R),
    ".rdata": ("R data", _R),
    ".mat": ("MATLAB", "write its arrays by scipy.io.loadmat and numpy.savez"),
    ".pkl": ("a pickle, which can run code when it is read", _by_pandas("read_pickle")),
    ".pickle": ("a pickle, which can run code when it is read", _by_pandas("read_pickle")),
    ".tfrecord": ("TFRecord", "write its features as Parquet, JSON Lines or NPZ"),
    ".tfrecords": ("TFRecord", "write its features as Parquet, JSON Lines or NPZ"),
    ".xml": ("XML", _by_pandas("read_xml")),
    ".html": ("a page of HTML", _by_pandas("read_html")),
    ".htm": ("a page of HTML", _by_pandas("read_html")),
    ".libsvm": ("LIBSVM", _SVM),
    ".7z": ("a 7z archive", "unpack it, or pack it as zip"),
    ".rar": ("a RAR archive", "unpack it, or pack it as zip"),
    ".pdf": ("PDF", _TABLE),
    ".docx": ("a Word document", _TABLE),
    ".png": ("one image", _IMAGES),
    ".jpg": ("one image", _IMAGES),
    ".jpeg": ("one image", _IMAGES),
    ".mp3": ("sound", "compute features of it, and upload them as a table or NPZ"),
    ".wav": ("sound", "compute features of it, and upload them as a table or NPZ"),
    ".mp4": ("a film", "upload its pictures as a zip"),
}

_PATTERNS = ((_ARFF, ".arff"), (_SQL_SCRIPT, ".sql"), (_LIBSVM, ".libsvm"))


def foreign_by_name(name: str) -> str | None:
    """Return why a file with this name is not read, and what to do; None if nothing speaks against it."""
    if (known := _SUFFIXES.get(Path(name).suffix.lower())) is None:
        return None
    return _refusal(name, *known)


def foreign_by_content(name: str, start: bytes) -> str | None:
    """Return why a file that begins with these bytes is not read, and what to do; None if it may be read.

    Args:
        name: for the message.
        start: the first bytes.
    """
    found = next(((kind, remedy) for begin, kind, remedy in _BEGINS if start.startswith(begin)), None)
    if found is None:
        found = _by_pattern(name, start.removeprefix(b"\xef\xbb\xbf"))
    return _refusal(name, *found) if found is not None else None


def _refusal(name: str, kind: str, remedy: str) -> str:
    return f"{name!r} is {kind}, which is not read: {remedy}"


def _by_pattern(name: str, start: bytes) -> tuple[str, str] | None:
    if start.startswith(_SAS):
        return "SAS", _by_pandas("read_sas")
    if _ORC.match(start):
        return "ORC", _by_pandas("read_orc")
    if start.startswith(_OLE):
        kind = "an old Excel workbook, or one with a password"
        return kind, "save it as .xlsx without a password, or as CSV"
    if _OLD_STATA.match(start) and Path(name).suffix.lower() == ".dta":
        return "Stata", _by_pandas("read_stata")
    if _PICKLE.match(start):
        return "a pickle, which can run code when it is read", _by_pandas("read_pickle")
    if _HTML.match(start):
        remedy = "the address may need a login: download the file itself"
        return "a page of HTML, not the data", f"{remedy}. A table in a page: {_by_pandas('read_html')}"
    if _XML.match(start):
        if code := _CODE.search(start[:4096]):
            kind = f"the answer of an object store that refused the download ({code[1].decode()})"
            return kind, "check the address and its credential, and download the file again"
        if b'progid="Excel.Sheet"' in start or b"urn:schemas-microsoft-com:office:spreadsheet" in start:
            return "an Excel workbook as XML", "save it as .xlsx or CSV"
        return "XML", _by_pandas("read_xml")
    return next((_SUFFIXES[suffix] for pattern, suffix in _PATTERNS if pattern.match(start)), None)
