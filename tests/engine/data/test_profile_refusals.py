"""Files that have no profile, and the reasons that are given."""

import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.engine.data.test_profile import NUMBERS, profile_csv
from tests.engine.helpers import profiled
from workers.engine.data.table import read_parquet
from workers.engine.errors import BadData, BadSpec, DamagedFile


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a,y\n1,0\n2,\n3,1\n", "target 'y' has no value in 1 of 3 rows.*row 2"),
        ("a,y\n1,0\n2,0\n", "only the value 0"),
        ("a,y\n", "no rows"),
        ("a,y\n1,2,3\n1,2\n1,2,3,4\n", "line 2 of data.csv has 3 fields instead of 2"),
    ],
)
def test_unusable_data_is_rejected_with_column_and_row(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(BadData, match=words):
        profile_csv(tmp_path, text)


def test_an_unknown_target_is_rejected_with_the_known_columns(tmp_path: Path) -> None:
    with pytest.raises(BadData, match="no column 'price'; there are a, b, y"):
        profile_csv(tmp_path, NUMBERS, target="price")


def test_pickled_arrays_are_rejected(tmp_path: Path) -> None:
    np.savez(tmp_path / "d.npz", x=np.array([{"a": 1}] * 3, dtype=object), y=np.arange(3))
    with pytest.raises(BadData, match="'x' contains Python objects"):
        profiled(tmp_path, source="npz", path=str(tmp_path / "d.npz"))


def test_a_damaged_npz_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "d.npz"
    np.savez_compressed(path, x=np.arange(1000), y=np.arange(1000) % 2)
    body = bytearray(path.read_bytes())
    body[60:90] = b"\xff" * 30
    path.write_bytes(body)
    with pytest.raises(BadData, match="not a readable NPZ"):
        profiled(tmp_path, source="npz", path=str(path))


def test_a_header_that_python_cannot_parse_is_damage_and_not_a_lack_of_memory(tmp_path: Path) -> None:
    path = tmp_path / "d.npz"
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': " + b"-" * 8000 + b"1}\n"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x.npy", b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)
    with pytest.raises(DamagedFile, match="nested too deep"):
        profiled(tmp_path, source="npz", path=str(path))


@pytest.mark.parametrize(("source", "remedy"), [("npz", "numpy.savez"), ("parquet", "write it again")])
def test_an_unreadable_file_is_named_without_its_folder_and_with_a_remedy(
    tmp_path: Path, source: str, remedy: str
) -> None:
    path = tmp_path / f"upload.{source}"
    path.write_bytes(b"PAR1 and then nothing that can be read PAR1")
    with pytest.raises(BadData) as refused:
        profiled(tmp_path, source=source, path=str(path))
    message = str(refused.value)
    assert message.startswith(f"this file is damaged: upload.{source} is not a readable")
    assert remedy in message
    assert str(tmp_path) not in message


def test_categories_of_a_parquet_file_are_texts_and_missing_ones_are_empty(tmp_path: Path) -> None:
    frame = pd.DataFrame({"city": pd.Categorical(["Paris", None, "Rome", "Rome"]), "y": [0, 1, 0, 1]})
    frame.to_parquet(tmp_path / "d.parquet")
    assert read_parquet(tmp_path / "d.parquet").columns["city"].tolist() == ["Paris", "", "Rome", "Rome"]


@pytest.mark.parametrize("second", ["a", "a "])
def test_two_columns_of_one_name_in_a_parquet_file_are_numbered(tmp_path: Path, second: str) -> None:
    pq.write_table(pa.table([[1, 2], [3, 4]], names=["a", second]), tmp_path / "d.parquet")
    columns = read_parquet(tmp_path / "d.parquet").columns
    assert {name: column.tolist() for name, column in columns.items()} == {"a": [1, 2], "a_2": [3, 4]}


def test_arrays_of_unequal_length_are_rejected(tmp_path: Path) -> None:
    np.savez(tmp_path / "d.npz", x=np.zeros((4, 2)), y=np.arange(3))
    with pytest.raises(BadData, match="differ in length"):
        profiled(tmp_path, source="npz", path=str(tmp_path / "d.npz"))


def test_an_unknown_bundled_set_names_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(BadSpec, match="digits, breast_cancer"):
        profiled(tmp_path, bundled="mnist")
