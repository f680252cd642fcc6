"""Compressed files and archives."""

import bz2
import gzip
import lzma

from tests.engine.data.collection.case import csv_rows
from tests.engine.data.collection.contents import (
    FRAME,
    PLAIN,
    READ,
    case,
    parquet,
    tarred,
    workbook,
    zipped,
    zstd,
)

CASES = (
    case("table.csv.gz", gzip.compress(PLAIN), READ, file={"format": "CSV", "compression": "gzip"}),
    case("table.csv.bz2", bz2.compress(PLAIN), READ, file={"compression": "bzip2"}),
    case("table.csv.xz", lzma.compress(PLAIN), READ, file={"compression": "xz"}),
    case("table.csv.zst", zstd(PLAIN), READ, file={"compression": "zstd"}),
    case("table.tsv.gz", gzip.compress(PLAIN.replace(b",", b"\t")), READ),
    case("table.jsonl.gz", gzip.compress(FRAME.to_json(orient="records", lines=True).encode()), READ),
    case("table.parquet.gz", gzip.compress(parquet(FRAME)), READ, file={"format": "Parquet"}),
    case("name_without_a_format.gz", gzip.compress(PLAIN), READ),
    case("compressed_under_another_name.csv", gzip.compress(PLAIN), READ),
    case("unpacked_by_a_browser.csv.gz", PLAIN, READ, file={"compression": None}),
    case("cut.csv.gz", gzip.compress(PLAIN)[:-9], refusal="is not a readable gzip file"),
    case("kaggle.zip", zipped(train_csv=PLAIN), READ, file={"archive": "zip", "members": ("train.csv",)}),
    case(
        "macintosh.zip", zipped(t_csv=PLAIN, hidden="__MACOSX/._t.csv", README_md=b"x", _DS_Store=b"x"), READ
    ),
    case("with_notes.zip", zipped(bank_csv=PLAIN, notes_txt=b"About the bank", bank_names=b"x"), READ),
    case("twice_compressed.zip", zipped(train_csv_gz=gzip.compress(PLAIN)), READ),
    case("excel.zip", zipped(train_xlsx=workbook(*map(list, [FRAME.columns, *FRAME.values]))), READ),
    case(
        "parts.zip",
        zipped(in__1_csv=csv_rows("a,b,y", "1,x,0"), in__2_csv=csv_rows("b,a,y", "z,2,1", "x,3,0")),
        READ,
        findings=("have the same columns and were read as one table: in/1.csv, in/2.csv",),
    ),
    case(
        "competition.zip",
        zipped(train_csv=PLAIN, test_csv=csv_rows("a,b", "1,x")),
        refusal="2 tables with different columns: test.csv, train.csv. Unpack it",
    ),
    case("database.zip", zipped(x_sqlite=b"SQLite format 3\0"), refusal="'x.sqlite' is an SQLite database"),
    case(
        "nothing.zip",
        zipped(a__x_bin=b"\0\2", b_exe=b"\2"),
        refusal="no images and no table; it has a/x.bin, b.exe",
    ),
    case("table.tar.gz", tarred("data/x.csv", PLAIN), READ, file={"archive": "tar.gz"}),
    case(
        "table.tar.bz2",
        tarred("x.csv", PLAIN, "w:bz2"),
        READ,
        file={"compression": "bzip2", "archive": "tar"},
    ),
)
