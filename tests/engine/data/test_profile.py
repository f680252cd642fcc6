"""Profiles: supported files, error messages and findings."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jobs.spec.data.profile import Profile
from tests.engine.helpers import csv_file, profiled
from workers.engine.data.bundled import CATALOGUE, load_bundled
from workers.engine.data.reading.csv_file import read_csv
from workers.engine.data.store import read_arrays
from workers.engine.data.table import read_parquet
from workers.engine.errors import BadData

NUMBERS = "a,b,y\n1,2,0\n3,4,1\n5,7,0\n2,2,1\n"


def profile_csv(tmp_path: Path, text: str, **task: Any) -> Profile:
    file = profiled(tmp_path, source="csv", path=csv_file(tmp_path, text), **task)
    return Profile.model_validate(file.profile)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,y\n1,2,0\n3,4,1\n", "fields instead of 2: '1,2,0'; .* Damaged rows \\(max_bad_share\\)"),
        ("a,y\n0,2,0\n1,4\n", "line 2 of data.csv has 3 fields"),
        ("a,y\n1,2,\n3,4,5\n", "line 2 of data.csv has 3 fields"),
        ("a,y\n1,0\n3,4,1\n", "line 3 of data.csv has 3 fields instead of 2"),
        ("a,y\n1,0\n3\n", "line 3 of data.csv has 1 fields instead of 2"),
    ],
)
def test_a_row_with_more_fields_than_the_header_does_not_shift_columns(
    tmp_path: Path, text: str, message: str
) -> None:
    with pytest.raises(BadData, match=message):
        read_csv(Path(csv_file(tmp_path, text)))


def test_commas_at_the_ends_of_all_lines_are_ignored(tmp_path: Path) -> None:
    columns = read_csv(Path(csv_file(tmp_path, "a,y\n1,2,\n3,4,\n"))).columns
    assert {name: column.tolist() for name, column in columns.items()} == {"a": [1, 3], "y": [2, 4]}


def test_whole_numbers_of_64_bits_without_a_sign_do_not_wrap(tmp_path: Path) -> None:
    table = read_csv(Path(csv_file(tmp_path, f"a,y\n{2**64 - 1},0\n3,1\n")))
    assert table.columns["a"].tolist() == [str(2**64 - 1), "3"]
    pq.write_table(pa.table({"a": pa.array([2**64 - 1, 1], pa.uint64())}), tmp_path / "d.parquet")
    assert read_parquet(tmp_path / "d.parquet").columns["a"].tolist() == [str(2**64 - 1), "1"]


@pytest.mark.parametrize(
    ("name", "task", "shape", "outputs"),
    [
        ("digits", "multiclass", (8, 8, 1), 10),
        ("breast_cancer", "binary", (30,), 2),
        ("wine", "multiclass", (13,), 3),
        ("iris", "multiclass", (4,), 3),
        ("diabetes", "regression", (10,), 1),
    ],
)
def test_a_bundled_set_is_described(
    tmp_path: Path, name: str, task: str, shape: tuple[int, ...], outputs: int
) -> None:
    file = profiled(tmp_path, bundled=name)
    profile = Profile.model_validate(file.profile)
    assert (profile.task, profile.input_shape, profile.outputs) == (task, shape, outputs)
    assert len(profile.preview) == 50
    assert sum(profile.class_counts) in (0, profile.rows)
    json.dumps(file.profile, allow_nan=False)


def test_every_bundled_set_is_in_the_catalogue() -> None:
    assert set(CATALOGUE) == {"digits", "breast_cancer", "wine", "iris", "diabetes"}


@pytest.mark.parametrize("name", CATALOGUE)
def test_a_bundled_set_is_what_scikit_learn_loads(name: str) -> None:
    from sklearn import datasets

    table, info = load_bundled(name)
    load = getattr(datasets, f"load_{name}")
    theirs = load(scaled=False) if name == "diabetes" else load()
    features = table.columns["image"].reshape(len(theirs.data), -1) if name == "digits" else None
    if features is None:
        names = [re.sub(r"_\(cm\)$", "_cm", text.replace(" ", "_")) for text in theirs.feature_names]
        assert [column.replace("_per_", "/") for column in table.columns] == [*names, info.target]
        features = np.column_stack([table.columns[column] for column in info.features])
    np.testing.assert_array_equal(features, theirs.data)
    labels = theirs.target if name in ("digits", "diabetes") else theirs.target_names[theirs.target]
    np.testing.assert_array_equal(table.columns[info.target], labels)


def test_the_same_data_has_the_same_digest(tmp_path: Path) -> None:
    digests = {profiled(tmp_path / str(i), bundled="iris").digest for i in range(2)}
    other = profiled(tmp_path / "other", bundled="wine").digest
    assert len(digests) == 1 and other not in digests


def test_the_columns_of_a_table_are_stored_and_their_positions_described(tmp_path: Path) -> None:
    profile = profile_csv(tmp_path, "colour,size,y\nred,1,a\nblue,2,b\nred,3,a\nblue,4.5,b\n")
    assert [(block.column, block.start, block.positions) for block in profile.blocks] == [
        ("colour", 0, 4),
        ("size", 4, 1),
    ]
    assert profile.class_labels == ("a", "b")
    stored = read_arrays(tmp_path / "dataset.arrow")
    assert "x" not in stored
    np.testing.assert_array_equal(stored["column_1"], [1, 2, 3, 4.5])


def test_a_target_of_many_real_values_is_a_regression(tmp_path: Path) -> None:
    profile = profile_csv(tmp_path, "a,price\n" + "".join(f"{i},{i * 1.5}\n" for i in range(30)))
    assert (profile.task, profile.outputs, profile.target) == ("regression", 1, "price")


def test_a_parquet_file_reads_like_its_csv(tmp_path: Path) -> None:
    pd.DataFrame({"a": [1, 3, 5, 2], "b": [2, 4, 7, 2], "y": [0, 1, 0, 1]}).to_parquet(tmp_path / "d.parquet")
    parquet = profiled(tmp_path / "p", source="parquet", path=str(tmp_path / "d.parquet"))
    csv = profiled(tmp_path / "c", source="csv", path=csv_file(tmp_path, NUMBERS))
    assert parquet.digest == csv.digest


def test_an_npz_of_images_is_an_image_set(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    images = rng.integers(0, 255, (12, 6, 5), dtype=np.uint8)
    np.savez(tmp_path / "d.npz", x=images, y=np.arange(12) % 3)
    profile = profiled(tmp_path, source="npz", path=str(tmp_path / "d.npz")).profile
    assert (profile["kind"], profile["input_shape"], profile["outputs"]) == ("image", [6, 5, 1], 3)


def test_a_matrix_of_zeros_and_ones_is_a_multilabel_target(tmp_path: Path) -> None:
    y = np.eye(4)[np.arange(20) % 4]
    np.savez(tmp_path / "d.npz", x=np.random.default_rng(0).normal(size=(20, 3)), y=y)
    profile = profiled(tmp_path, source="npz", path=str(tmp_path / "d.npz")).profile
    assert (profile["task"], profile["outputs"], profile["class_counts"]) == ("multilabel", 4, [5] * 4)


def test_findings_name_leaks_constants_imbalance_and_what_is_left_out(tmp_path: Path) -> None:
    rows = [f"{i % 7},{'y' if i == 0 else 'n'},5,{i == 0},id-{i}x" for i in range(150)]
    profile = profile_csv(tmp_path, "a,leak,constant,target,id\n" + "\n".join(rows) + "\n", target="target")
    text = " ".join([*profile.findings, *(offer.finding for offer in profile.offers)])
    assert "'leak' determines the target" in text
    assert "'constant' is constant" in text
    assert "imbalanced" in text
    assert "'id' was taken for an identifier" in text
    assert profile.features == ("a", "leak", "constant")


def test_repeated_rows_are_counted(tmp_path: Path) -> None:
    profile = profile_csv(tmp_path, "a,y\n1,0\n1,0\n2,1\n1,1\n")
    assert profile.duplicates == 1


def test_the_smallest_numbers_of_a_float_have_a_histogram(tmp_path: Path) -> None:
    profile = profile_csv(tmp_path, "a,y\n" + "".join(f"{i % 2 and 5e-324},{i % 2}\n" for i in range(8)))
    (column,) = (column for column in profile.columns if column.name == "a")
    assert column.histogram == (4, *[0] * 18, 4)
    assert (column.min, column.max) == (0, 5e-324)
