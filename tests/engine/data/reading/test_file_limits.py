"""Small files that expand: they are refused before memory is allocated, and long texts stay alone."""

import importlib
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jobs.spec.data.file_limits import FileLimits
from jobs.spec.data.profile import Profile
from tests.engine.helpers import csv_file, profiled
from workers.engine.data.reading.archives.archive import open_archive
from workers.engine.data.reading.csv_file import read_csv
from workers.engine.data.store import read_arrays, write_npz
from workers.engine.data.table import Table, read_arrow, read_npz, read_parquet
from workers.engine.data.texts import TEXT, text_array
from workers.engine.errors import BadData

Reader = Callable[..., Table]

SMALL = FileLimits(expanded_bytes=1_000_000, table_bytes=1_000_000, columns=50, text_characters=1000)
LONG = "x" * 100_000


@pytest.fixture
def peak() -> Iterator[Callable[[], int]]:
    # Its import takes more memory than the limits of these tests.
    importlib.import_module("pandas")
    tracemalloc.start()
    yield lambda: tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()


def test_one_long_cell_does_not_enlarge_the_other_rows(tmp_path: Path, peak: Callable[[], int]) -> None:
    rows = "".join(f"word{i},{i},{i % 2}\n" for i in range(2000))
    file = profiled(tmp_path, source="csv", path=csv_file(tmp_path, f"text,a,y\n{LONG},0,0\n{rows}"))
    assert peak() < 10_000_000
    assert (tmp_path / "dataset.arrow").stat().st_size < 300_000
    profile = Profile.model_validate(file.profile)
    assert profile.features == ("text", "a")
    assert profile.columns[0].type == "text"
    assert len(profile.preview[0]["text"]) == 201


def test_texts_are_stored_as_they_were_read(tmp_path: Path) -> None:
    texts = text_array(["", "ü" * 40, "a\0", "b"])
    write_npz(tmp_path / "d.npz", {"y": np.arange(4), "column_0": texts})
    read = read_arrays(tmp_path / "d.npz")
    assert list(read) == ["y", "column_0"]
    assert read["column_0"].dtype == TEXT
    np.testing.assert_array_equal(read["column_0"], texts)


def test_files_of_earlier_versions_with_texts_of_fixed_width_are_read(tmp_path: Path) -> None:
    np.savez(tmp_path / "d.npz", column_0=np.array(["a", "bc"]))
    assert read_arrays(tmp_path / "d.npz")["column_0"].tolist() == ["a", "bc"]


def many_columns(folder: Path) -> tuple[Reader, str]:
    header = ",".join(f"c{i}" for i in range(40))
    return read_csv, csv_file(folder, f"{header}\n" + "1\n" * 5000)


def long_cell(folder: Path) -> tuple[Reader, str]:
    return read_csv, csv_file(folder, f"a,y\n{'x' * 1001},0\n")


def too_many_names(folder: Path) -> tuple[Reader, str]:
    return read_csv, csv_file(folder, ",".join(f"c{i}" for i in range(51)) + "\n")


def long_name(folder: Path) -> tuple[Reader, str]:
    return read_csv, csv_file(folder, f"{'n' * 501},y\n1,2\n")


def packed_zeros(folder: Path) -> tuple[Reader, Path]:
    np.savez_compressed(folder / "d.npz", x=np.zeros(200_000))
    return read_npz, folder / "d.npz"


def values_without_bytes(folder: Path) -> tuple[Reader, Path]:
    header = b"{'descr': '|V0', 'fortran_order': False, 'shape': (9000000000,), }"
    with zipfile.ZipFile(folder / "d.npz", "w") as archive:
        archive.writestr("x.npy", b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)
    return read_npz, folder / "d.npz"


def repeated_text(folder: Path) -> tuple[Reader, Path]:
    table = pa.table({"a": pa.array(["x" * 900] * 5000), "y": pa.array([0, 1] * 2500)})
    pq.write_table(table, folder / "d.parquet")
    assert (folder / "d.parquet").stat().st_size < 10_000
    return read_parquet, folder / "d.parquet"


def repeated_bytes(folder: Path, kind: Any) -> tuple[Reader, Path]:
    table = pa.table({"a": pa.array([b"x" * 900] * 5000, kind), "y": pa.array([0, 1] * 2500)})
    pq.write_table(table, folder / "d.parquet")
    return read_parquet, folder / "d.parquet"


def repeated_number(folder: Path) -> tuple[Reader, Path]:
    pq.write_table(pa.table({"a": pa.array([0.0] * 200_000)}), folder / "d.parquet")
    return read_parquet, folder / "d.parquet"


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (many_columns, "expands to 1,600,640 bytes; at most 1,000,000"),
        (long_cell, "column 'a' has a text of 1,001 characters in row 1; at most 1,000"),
        (too_many_names, "51 columns; at most 50"),
        (long_name, "a column name of 501 characters"),
        (packed_zeros, "expands to 1,600,"),
        (values_without_bytes, "expands to 9,000,000,000 bytes"),
        (repeated_text, "column 'a' expands to 4,580,000 bytes"),
        (repeated_number, "expands to 1,600,000 bytes"),
    ],
)
def test_a_file_that_expands_is_refused_before_it_is_read(tmp_path: Path, make: Any, words: str) -> None:
    read, path = make(tmp_path)
    with pytest.raises(BadData, match=words):
        read(tmp_path / path, SMALL)


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(900)])
def test_bytes_that_many_rows_repeat_are_refused_before_they_are_read(tmp_path: Path, kind: Any) -> None:
    read, path = repeated_bytes(tmp_path, kind)
    pool = pa.default_memory_pool()
    pa.set_memory_pool(counting := pa.proxy_memory_pool(pool))
    try:
        with pytest.raises(BadData, match="expands to"):
            read(path, SMALL)
    finally:
        pa.set_memory_pool(pool)
    assert counting.max_memory() < 1_000_000


@pytest.mark.parametrize("new", [pa.ipc.new_file, pa.ipc.new_stream])
def test_an_arrow_file_cannot_ask_for_any_amount_of_memory(tmp_path: Path, new: Any) -> None:
    table = pa.table({"a": np.arange(4000.0), "y": [0, 1] * 2000})
    with new(
        tmp_path / "d.arrow", table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")
    ) as writer:
        writer.write_table(table)
    # A compressed buffer begins with its size when it is unpacked.
    body, size = (tmp_path / "d.arrow").read_bytes(), (32_000).to_bytes(8, "little")
    assert size in body
    (tmp_path / "d.arrow").write_bytes(body.replace(size, (2**60).to_bytes(8, "little")))
    with pytest.raises(
        BadData, match="expands to 1,152,921,504,606,846,976 bytes; at most 1,000,000 are read"
    ):
        read_arrow(tmp_path / "d.arrow", SMALL)


def test_bytes_of_a_parquet_file_are_read_as_texts(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": pa.array([b"x", None, b"x"]), "y": [0, 1, 0]}), tmp_path / "d.parquet")
    assert read_parquet(tmp_path / "d.parquet", SMALL).columns["a"].tolist() == ["x", "", "x"]


def test_categories_are_counted_before_they_are_encoded(tmp_path: Path) -> None:
    rows = "".join(f"t{i % 48},{i % 2}\n" for i in range(6000))
    path = csv_file(tmp_path, f"a,y\n{rows}")
    with pytest.raises(BadData, match="with its columns encoded expands to 1,200,000 bytes"):
        profiled(tmp_path, source="csv", path=path, limits=SMALL)


def test_the_directory_of_an_archive_is_limited_before_it_is_read(
    tmp_path: Path, peak: Callable[[], int]
) -> None:
    with zipfile.ZipFile(tmp_path / "d.keras", "w") as archive:
        for number in range(3000):
            archive.writestr(f"{number:0>200}", b"")
    before = peak()
    tracemalloc.reset_peak()
    with pytest.raises(BadData, match="lists too many files"):
        open_archive(tmp_path / "d.keras", directory_bytes=1000).__enter__()
    assert peak() - before < 1_000_000
