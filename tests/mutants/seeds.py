"""Seed files for every upload format. A new format needs its makers in `SEEDS` alone.

Each file is small and the same in every run.
"""

import bz2
import gzip
import io
import json
import lzma
import pickle
import re
import tarfile
import zipfile
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from functools import cache
from typing import Any, NamedTuple

import h5py
import numpy as np
import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq

from tests.images import folders, picture

ROWS = 40
DATE = (2026, 11, 1, 0, 0, 0)
COLOURS = ["red", "blue", "green", "grün"]


class Seed(NamedTuple):
    """A seed file: its name, the upload's name, and the functions that make it and a further file."""

    name: str
    file: str
    make: Callable[[], bytes]
    further: Callable[[], bytes] | None = None


def columns(rows: int = ROWS) -> dict[str, list[Any]]:
    """Return a table with numbers, gaps, categories, texts, dates and a target."""
    return {
        "a": [i * 1.5 for i in range(rows)],
        "n": [None if i % 7 == 0 else i for i in range(rows)],
        "colour": [COLOURS[i % 4] for i in range(rows)],
        "note": [f"the {i} quick brown words of row {i % 5}" for i in range(rows)],
        "day": [f"2026-{i % 12 + 1:02}-{i % 28 + 1:02}" for i in range(rows)],
        "y": [["p", "q"][i % 2] for i in range(rows)],
    }


def text(
    delimiter: str = ",", end: str = "\n", decimal: str = ".", *, header: bool = True, bad: int = 0
) -> str:
    """Return the table as text; the last `bad` rows have one field too many."""
    table = columns()
    rows = [list(table)] if header else []
    for at, values in enumerate(zip(*table.values(), strict=True)):
        fields = ["" if value is None else str(value) for value in values]
        fields[0] = fields[0].replace(".", decimal)
        rows.append([*fields, "extra"] if at >= ROWS - bad else fields)
    return "".join(delimiter.join(row) + end for row in rows)


def quoted(cells: list[str]) -> bytes:
    """Return a table whose second column has these texts in quotes."""
    rows = (f'{i},"{cells[i % len(cells)]}",{i % 2}\n' for i in range(ROWS))
    return ("a,text,y\n" + "".join(rows)).encode()


CELLS = [
    "1e999", "-1e999", "-0", "inf", "-Infinity", "nan", "9" * 400, "-9223372036854775808",
    "18446744073709551616", "0x1f", "1_000", "٣٤", "１２", "½", "1,5", "12 %", "2026-13-45", "99999-01-01",
    "0000-00-00", "24:61:61",
    "2026-11-01T00:00:00+99:99", "true", "None", "\u202e", "\ufeff", "\u2028", "e\u0301" * 50, "=1+1", "@x",
    "x" * 3000,
]  # fmt: skip
"""Values that look like numbers, dates, words or formulas, and are at or beyond their limits."""
FORMULAS = ["=1+1", "@SUM(A1)", "+cmd|' /C calc'!A0", "-2+3", '=HYPERLINK(""http://x"",""y"")', "\t=1"]


def arrow_table(**extra: Any) -> pa.Table:
    """Return the table as Arrow, with further columns."""
    return pa.table({**columns(), **extra})


def parquet(table: pa.Table, **options: Any) -> bytes:
    """Return a table as a Parquet file."""
    file = io.BytesIO()
    pq.write_table(table, file, **options)
    return file.getvalue()


def arrow(table: pa.Table, *, stream: bool = False, compression: str | None = None) -> bytes:
    """Return a table as an Arrow file or stream."""
    file = io.BytesIO()
    new = pa.ipc.new_stream if stream else pa.ipc.new_file
    with new(file, table.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_table(table, max_chunksize=16)
    return file.getvalue()


def times() -> pa.Table:
    """Return a table with times, decimals, bytes and unsigned numbers."""
    stamps = pa.array(
        [1_700_000_000_000 + i * 86_400_000 for i in range(ROWS)], pa.timestamp("ms", "Europe/Paris")
    )
    return pa.table(
        {
            "when": stamps,
            "day": pa.array(range(ROWS), pa.date32()),
            "clock": pa.array(range(ROWS), pa.time32("s")),
            "took": pa.array(range(ROWS), pa.duration("ms")),
            "price": pa.array(range(ROWS), pa.int64()).cast(pa.decimal128(30, 2)),
            "raw": pa.array([b"\x00\xff" * (i % 3) for i in range(ROWS)]),
            "u": pa.array(range(ROWS), pa.uint64()),
            "h": pa.array(np.arange(ROWS, dtype=np.float16)),
            "y": [i % 2 for i in range(ROWS)],
        }
    )


def extremes(*, raw: bool) -> pa.Table:
    """Return a table with many types' smallest and largest values; `raw` adds times and decimals."""
    small, large = -(2**63), 2**63 - 1
    numbers = pa.array([small, large, 0, None] * 10, pa.int64())
    extreme_columns = {
        "whole": numbers,
        "unsigned": pa.array([0, 2**63 - 1, None, 7] * 10, pa.uint64()),
        "real": [float("nan"), float("inf"), -1.8e308 * 10, 5e-324] * 10,
        "single": pa.array([3.4e38, -3.4e38, 1e-45, None] * 10, pa.float32()),
        "text": ["", "\x00", "\u202e\ud7ff", "x" * 5000] * 10,
        "only_missing": pa.array([None] * ROWS, pa.float64()),
        "y": [i % 2 for i in range(ROWS)],
    }
    if raw:
        for unit in ("s", "ms", "us", "ns"):
            extreme_columns[f"at_{unit}"] = numbers.cast(pa.timestamp(unit))
            extreme_columns[f"took_{unit}"] = numbers.cast(pa.duration(unit))
        extreme_columns["days"] = pa.array([-(2**31), 2**31 - 1, 0, None] * 10, pa.int32()).cast(pa.date32())
        extreme_columns["money"] = pa.array(
            [Decimal("9" * 38), Decimal("-" + "9" * 38), Decimal(0), None] * 10
        )
    return pa.table(extreme_columns)


def nested() -> pa.Table:
    """Return a table with a list and a structure in each row."""
    return arrow_table(many=[[1, 2]] * ROWS, both=[{"x": 1, "y": "z"}] * ROWS)


def labels() -> pa.Table:
    """Return a table with lists of words and whole numbers, as long in each row, some missing."""
    lists = [["red", "büg"], [], None, ["red", "x" * 40]] * (ROWS // 4)
    return pa.table(
        {
            "a": range(ROWS),
            "many": pa.array(lists, pa.large_list(pa.large_string())),
            "codes": pa.array([[i, 2**63 - 1] for i in range(ROWS)]),
            "two": pa.array([[True, False]] * ROWS, pa.list_(pa.bool_(), 2)),
            "y": pa.array([texts or [] for texts in lists]),
        }
    )


def words() -> pa.Table:
    """Return a table with dictionaries, views and large texts."""
    colours = columns()["colour"]
    return pa.table(
        {
            "dictionary": pa.array(colours).dictionary_encode(),
            "view": pa.array(colours, pa.string_view()),
            "large": pa.array(colours, pa.large_string()),
            "none": pa.nulls(ROWS),
            "flag": [i % 3 == 0 for i in range(ROWS)],
            "y": [i % 2 for i in range(ROWS)],
        }
    )


def archive(members: dict[str, bytes], *, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """Return a zip archive, with the same times in every run."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as zip_file:
        for name, body in members.items():
            zip_file.writestr(zipfile.ZipInfo(name, DATE), body, compress_type=method)
    return file.getvalue()


def npy(array: np.ndarray, version: tuple[int, int] | None = None) -> bytes:
    """Return an array as an NPY file; objects are pickled."""
    file = io.BytesIO()
    np.lib.format.write_array(file, array, version=version)
    return file.getvalue()


def npz(method: int = zipfile.ZIP_DEFLATED, **arrays: np.ndarray) -> bytes:
    """Return arrays as an NPZ file."""
    return archive({f"{name}.npy": npy(array) for name, array in arrays.items()}, method=method)


def header(descr: str, shape: str, body: bytes = b"") -> bytes:
    """Return an NPY file whose header is written as given."""
    head = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head + body


def json_lines(rows: list[Any]) -> bytes:
    """Return values as JSON Lines."""
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def table_rows() -> list[dict[str, Any]]:
    """Return the table as objects; a missing value is a missing key."""
    table = columns()
    rows = [dict(zip(table, values, strict=True)) for values in zip(*table.values(), strict=True)]
    return [{name: value for name, value in row.items() if value is not None} for row in rows]


class Evil:
    """An object whose unpickling calls a function."""

    def __reduce__(self) -> Any:
        return (print, ("unpickled",))


def weights(**arrays: np.ndarray) -> bytes:
    """Return an HDF5 file with layer weights."""
    file = io.BytesIO()
    with h5py.File(file, "w") as h5_file:
        for name, array in arrays.items():
            h5_file[f"layers/{name}/vars/0"] = array
    return file.getvalue()


def linked_weights() -> bytes:
    """Return an HDF5 file with links to other files and groups."""
    file = io.BytesIO()
    with h5py.File(file, "w") as h5_file:
        h5_file["layers/dense/vars/0"] = np.ones((4, 3), np.float32)
        h5_file["layers/dense/vars/1"] = h5py.ExternalLink("/etc/passwd", "/x")
        h5_file["layers/again"] = h5py.SoftLink("/layers/dense")
    return file.getvalue()


def layer(kind: str, name: str, inputs: str = "", **config: Any) -> dict[str, Any]:
    """Return a layer config in a functional model."""
    history = {
        "class_name": "__keras_tensor__",
        "config": {"keras_history": [inputs, 0, 0], "shape": [None, 4]},
    }
    return {
        "module": "keras.layers",
        "class_name": kind,
        "config": {"name": name, **config},
        "registered_name": None,
        "name": name,
        "inbound_nodes": [{"args": [history], "kwargs": {}}] if inputs else [],
    }


def keras(config: dict[str, Any], body: bytes, **more: bytes) -> bytes:
    """Return a `.keras` file."""
    metadata = {"keras_version": "3.15.1", "date_saved": "2026-11-01@00:00:00"}
    members = {
        "metadata.json": json.dumps(metadata).encode(),
        "config.json": json.dumps(config).encode(),
        "model.weights.h5": body,
    }
    return archive(members | {name.replace("_", "."): member_body for name, member_body in more.items()})


def functional(*layers: dict[str, Any]) -> dict[str, Any]:
    """Return a functional model's config."""
    config = {
        "name": "model", "trainable": True, "layers": list(layers),
        "input_layers": [[layers[0]["name"], 0, 0]], "output_layers": [[layers[-1]["name"], 0, 0]],
    }  # fmt: skip
    return {"module": "keras", "class_name": "Functional", "config": config, "registered_name": None}


def small_model() -> dict[str, Any]:
    """Return the config for a model with one dense layer."""
    return functional(
        layer("InputLayer", "input", batch_shape=[None, 4], dtype="float32"),
        layer("Dense", "dense", "input", units=3, activation="softmax"),
    )


def sequential() -> dict[str, Any]:
    """Return the config for a Sequential with several layers."""
    layers = [
        layer("InputLayer", "input", batch_shape=[None, 8, 8, 1]),
        layer("Conv2D", "conv", filters=4, kernel_size=[3, 3]),
        layer("Flatten", "flatten"),
        layer("Dense", "dense", units=3),
    ]
    return {"module": "keras", "class_name": "Sequential", "config": {"name": "s", "layers": layers}}


def lines(names: str, row: Callable[[int], str]) -> bytes:
    """Return a text table whose rows are made one by one."""
    return "".join(f"{line}\n" for line in (names, *map(row, range(ROWS)))).encode()


def mixed(number: int) -> dict[str, Any]:
    """Return an object whose values have another type than those of the next."""
    a = [1, 2**63, -1.5, True, None, "x"][number % 6]
    return {"a": a, "f": number % 2 == 0, "big": 2**60 + number, "u": "\\ud83d \u2028", "y": number % 2}


FUNCTION = {"module": "builtins", "class_name": "function", "config": "mse", "registered_name": "function"}
COMPILED = {"optimizer": "adam", "loss": FUNCTION}
KERNEL = np.ones((4, 3), np.float32)
MATRIX = np.arange(ROWS * 3, dtype=np.float64).reshape(ROWS, 3)
TARGET = np.arange(ROWS) % 2
PIXELS = (np.arange(ROWS * 64) % 255).astype(np.uint8).reshape(ROWS, 8, 8, 1)


def tarred(members: dict[str, bytes]) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as tar_file:
        for name, body in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(body)
            tar_file.addfile(entry, io.BytesIO(body))
    return file.getvalue()


def zstd(body: bytes) -> bytes:
    """Return bytes compressed by zstd."""
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(body)
    return bytes(sink.getvalue())


def workbook() -> bytes:
    """Return a workbook with numbers, texts, dates, errors and formulas, the same in every run."""
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.append(["Report"])
    sheet.append(["a", "day", "ok", "text", "y"])
    for i in range(ROWS):
        value = "#DIV/0!" if i == 3 else f"=A{i}" if i == 5 else i * 1.5
        sheet.append([value, datetime(2026, 11, i % 28 + 1), i % 3 == 0, COLOURS[i % 4], i % 2])
    book.create_sheet("Other").append(["x"])
    book.properties.created = book.properties.modified = datetime(2026, 11, 1)
    file = io.BytesIO()
    book.save(file)
    with zipfile.ZipFile(file) as written:
        # With fixed times.
        members = {name: written.read(name) for name in written.namelist()}
    return archive(
        {
            name: re.sub(rb"<dcterms:modified.*?</dcterms:modified>", b"", body)
            for name, body in members.items()
        }
    )


def unpacked(packed: bytes) -> bytes:
    """Return a zip archive without compression, so that mutations change its content."""
    with zipfile.ZipFile(io.BytesIO(packed)) as written:
        return archive({name: written.read(name) for name in written.namelist()}, method=zipfile.ZIP_STORED)


def pictures() -> list[bytes]:
    kinds = [picture(kind) for kind in ("PNG", "JPEG", "BMP", "GIF", "WEBP")]
    return [*kinds, picture("PNG", "P"), picture("JPEG", "CMYK"), picture("PNG", "I;16")]


SEEDS: list[Seed] = [
    Seed("csv", "t.csv", lambda: text().encode()),
    Seed("csv-crlf", "t.csv", lambda: text(end="\r\n").encode()),
    Seed("csv-carriage-returns", "t.csv", lambda: text(end="\r").encode()),
    Seed("csv-mark", "t.csv", lambda: b"\xef\xbb\xbf" + text().encode()),
    Seed("csv-latin", "t.csv", lambda: text(";", decimal=",").encode("cp1252")),
    Seed("csv-utf16", "t.csv", lambda: text().encode("utf-16")),
    Seed("csv-no-header", "t.csv", lambda: text(header=False).encode()),
    Seed("csv-bad-rows", "t.csv", lambda: text(bad=3).encode()),
    Seed("csv-quotes", "t.csv", lambda: quoted(['a ""x""', "two\nlines", "a,b", ""])),
    Seed("csv-formulas", "t.csv", lambda: quoted(FORMULAS)),
    Seed("csv-spaces", "t.csv", lambda: lines("a, text, y", lambda i: f'{i}, "w {i}", {i % 2}')),
    Seed("csv-extremes", "t.csv", lambda: lines(
         "a,b,y", lambda i: f"{CELLS[i % len(CELLS)]},1e{i * 20 - 400},{i % 2}")),
    Seed("csv-wide", "t.csv", lambda: lines(",".join(f"c{i}" for i in range(300)),
         lambda _: "1,2," * 149 + "3,4")),
    Seed("csv-numbers", "t.csv", lambda: lines("a,p,y", lambda i: f'"1,{i:03}.5",{i} %,{i * 3}')),
    Seed("tsv", "t.tsv", lambda: text("\t").encode()),
    Seed("tsv-bars", "t.txt", lambda: text("|").encode()),
    Seed("csv-titles", "t.csv", lambda: b"Report\n\n# note\n" + text().encode() + b"\nSource: x\n"),
    Seed("csv-index", "t.csv", lambda: lines(",a,a,,y", lambda i: f"{i},{i},{i},x,{i % 2}")),
    Seed("csv-cyrillic", "t.csv", lambda: text().replace("red", "Москва").encode("cp1251", "ignore")),
    Seed("csv-japanese", "t.csv", lambda: text().replace("red", "東京").encode("cp932", "ignore")),
    Seed("csv-wide-characters", "t.csv", lambda: text().encode("utf-16-le")),
    Seed("txt-blanks", "t.data", lambda: lines("a b   y", lambda i: f'{i}  "w {i}" {i % 2}')),
    Seed("txt-colons", "t.dat", lambda: text("::").encode()),
    Seed("csv-gzip", "t.csv.gz", lambda: gzip.compress(text().encode(), mtime=0)),
    Seed("csv-bzip2", "t.csv.bz2", lambda: bz2.compress(text().encode())),
    Seed("csv-xz", "t.csv.xz", lambda: lzma.compress(text().encode())),
    Seed("csv-zstd", "t.csv.zst", lambda: zstd(text().encode())),
    Seed("csv-zip", "t.zip", lambda: archive({"train.csv": text().encode(), "README.md": b"x"})),
    Seed("csv-parts", "t.zip", lambda: archive({"1.csv": text().encode(), "2.csv": text().encode()})),
    Seed("csv-tar", "t.tar.gz", lambda: gzip.compress(tarred({"t.csv": text().encode()}), mtime=0)),
    Seed("xlsx", "t.xlsx", workbook),
    Seed("xlsx-stored", "t.xlsx", lambda: unpacked(workbook())),
    Seed("json-array", "t.json", lambda: json.dumps(table_rows(), indent=1).encode()),
    Seed("json-columns", "t.json", lambda: json.dumps(columns()).encode()),
    Seed("json-pandas", "t.json", lambda: json.dumps({name: dict(enumerate(values))
         for name, values in columns().items()}).encode()),
    Seed("parquet-index", "t.parquet", lambda: parquet(pa.Table.from_pandas(
         arrow_table().to_pandas().set_index(["colour", "n"])))),
    Seed("parquet", "t.parquet", lambda: parquet(arrow_table())),
    Seed("parquet-gzip", "t.parquet", lambda: parquet(arrow_table(), compression="gzip", row_group_size=16)),
    Seed("parquet-zstd", "t.parquet", lambda: parquet(arrow_table(), compression="zstd",
         data_page_version="2.0")),
    Seed("parquet-plain", "t.pq", lambda: parquet(arrow_table(), compression="none", use_dictionary=False)),
    Seed("parquet-times", "t.parquet", lambda: parquet(times())),
    Seed("parquet-words", "t.parquet", lambda: parquet(words())),
    Seed("parquet-extremes", "t.parquet", lambda: parquet(extremes(raw=False))),
    Seed("parquet-extreme-times", "t.parquet", lambda: parquet(
         extremes(raw=True).drop_columns(["at_s", "took_s"]))),
    Seed("parquet-nested", "t.parquet", lambda: parquet(nested())),
    Seed("parquet-labels", "t.parquet", lambda: parquet(labels())),
    Seed("parquet-streams", "t.parquet", lambda: parquet(pa.table({"a": columns()["a"], "y": columns()["y"]}),
         use_dictionary=False, use_byte_stream_split=["a"])),
    Seed("arrow-file", "t.arrow", lambda: arrow(arrow_table())),
    Seed("arrow-stream", "t.arrow", lambda: arrow(arrow_table(), stream=True)),
    Seed("arrow-lz4", "t.feather", lambda: arrow(arrow_table(), compression="lz4")),
    Seed("arrow-zstd", "t.ipc", lambda: arrow(arrow_table(), stream=True, compression="zstd")),
    Seed("arrow-times", "t.arrow", lambda: arrow(times())),
    Seed("arrow-words", "t.arrow", lambda: arrow(words())),
    Seed("arrow-extremes", "t.arrow", lambda: arrow(extremes(raw=False))),
    Seed("arrow-extreme-times", "t.arrow", lambda: arrow(extremes(raw=True))),
    Seed("arrow-nested", "t.arrow", lambda: arrow(nested())),
    Seed("arrow-labels", "t.arrow", lambda: arrow(labels())),
    Seed("npz", "t.npz", lambda: npz(x=MATRIX, y=TARGET)),
    Seed("npz-stored", "t.npz", lambda: npz(zipfile.ZIP_STORED, a=MATRIX[:, 0],
         t=np.array(COLOURS * 10), y=TARGET)),
    Seed("npz-images", "t.npz", lambda: npz(image=PIXELS, y=TARGET)),
    Seed("npz-times", "t.npz", lambda: npz(day=np.arange(ROWS).astype("M8[D]"),
         s=np.array([b"x", b"yy"] * 20), y=TARGET)),
    Seed("npz-extremes", "t.npz", lambda: npz(r=np.array([np.inf, np.nan, -0.0, 1e308] * 10), y=TARGET,
         u=np.array([2**64 - 1, 0] * 20, np.uint64), t=np.array([-(2**63), 2**63 - 1] * 20).view("M8[as]"))),
    Seed("npz-target", "t.npz", lambda: npz(x=MATRIX, y=np.array([np.inf, np.nan, 1.5, 2.5] * 10))),
    Seed("npz-objects", "t.npz", lambda: npz(x=MATRIX, o=np.array([Evil()] * ROWS, object), y=TARGET)),
    Seed("npz-pickle", "t.npz", lambda: archive({"x.npy": npy(MATRIX), "y.npy": pickle.dumps(Evil())})),
    Seed("npz-orders", "t.npz", lambda: npz(f=np.asfortranarray(MATRIX), b=MATRIX.astype(">f4"), y=TARGET)),
    Seed("npy", "t.npy", lambda: npy(MATRIX)),
    Seed("npy-second-version", "t.npy", lambda: npy(MATRIX.astype("f4"), (2, 0))),
    Seed("npy-texts", "t.npy", lambda: npy(np.array([["a", "bc"], ["d", "e"]] * 20))),
    Seed("npy-records", "t.npy", lambda: npy(np.zeros(ROWS, [("a", "f8"), ("y", "i4")]))),
    Seed("npy-objects", "t.npy", lambda: npy(np.array([[Evil(), 1]] * ROWS, object))),
    Seed("npy-huge", "t.npy", lambda: header("'<f8'", "(1000000000000, 1000000)", bytes(64))),
    Seed("npy-no-bytes", "t.npy", lambda: header("'|V0'", "(9000000000, 2)")),
    Seed("jsonl", "t.jsonl", lambda: json_lines(table_rows())),
    Seed("jsonl-values", "t.ndjson", lambda: json_lines([mixed(i) for i in range(ROWS)])),
    Seed("jsonl-extremes", "t.jsonl", lambda: json_lines([
         {"a": CELLS[i % len(CELLS)], "b": 10.0 ** (i - 340), "c": -(2**63) + i, "y": i % 2}
         for i in range(ROWS)])),
    Seed("jsonl-nested", "t.jsonl", lambda: json_lines([{"a": {"b": [i]}, "y": i % 2} for i in range(ROWS)])),
    Seed("jsonl-formulas", "t.jsonl", lambda: json_lines([
         {"t": FORMULAS[i % 6], "=k": i} for i in range(ROWS)])),
    Seed("jsonl-keys", "t.jsonl", lambda: json_lines([{f"k{i}": i, "y": i % 2} for i in range(ROWS)])),
    Seed("keras", "m.keras", lambda: keras(small_model(), weights(dense=KERNEL))),
    Seed("keras-sequential", "m.keras", lambda: keras(sequential(), weights(
         conv=np.ones((3, 3, 1, 4), np.float32), dense=np.ones((144, 3), np.float32)))),
    Seed("keras-compiled", "m.keras", lambda: keras(small_model() | {"compile_config": COMPILED},
         weights(dense=KERNEL))),
    Seed("keras-lambda", "m.keras", lambda: keras(functional(small_model()["config"]["layers"][0],
         layer("Lambda", "evil", "input", function={"code": "4wA="})), weights(dense=KERNEL))),
    Seed("keras-links", "m.keras", lambda: keras(small_model(), linked_weights())),
    Seed("keras-features", "m.keras", lambda: keras(small_model(), weights(dense=KERNEL),
         features_json=b'{"version": 1, "columns": []}')),
    Seed("images-zip", "t.zip", lambda: archive(folders(count=4))),
    Seed("images-formats", "t.zip", lambda: archive({f"{'ab'[i % 2]}/{i}": body for i, body in
         enumerate(pictures())}, method=zipfile.ZIP_STORED)),
    Seed("images-tar", "t.tar", lambda: tarred(folders(count=2))),
    Seed("images-labels", "t.tar.gz", lambda: gzip.compress(tarred({"labels.csv":
         b"file,size\na.png,1.5\nb.png,2.5\n", "a.png": picture(), "b.png": picture()}), mtime=0)),
    Seed("keras-pickle", "m.keras", lambda: pickle.dumps(Evil())),
    Seed("csv-several", "t.csv", lambda: lines("a,b,y", lambda i: f"{i},w{i % 4},{i % 2}"),
         lambda: lines("y,b,a", lambda i: f'{i % 2},"é {i}",{i}.5').decode().encode("utf-16")),
    Seed("parquet-several", "t.parquet", lambda: parquet(arrow_table(extra=TARGET)),
         lambda: parquet(arrow_table(extra=TARGET.astype("u1")), compression="zstd")),
]  # fmt: skip
"""All seed files."""


@cache
def content(number: int) -> bytes:
    """Return a seed's bytes, which are made once in a process."""
    return SEEDS[number].make()
