"""Targets with several labels in Parquet and Arrow files: list columns, as JSON Lines has them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jobs.messages.task import DatasetFile
from jobs.spec.data.file_limits import FileLimits
from jobs.spec.data.profile import Profile
from tests.engine.helpers import profiled, spec_of
from tests.present import present
from workers.engine.data.dataset import load_dataset
from workers.engine.data.spilled import Spill
from workers.engine.data.table import read_arrow, read_parquet
from workers.engine.errors import BadData, TargetGaps

TAGS: tuple[list[str], ...] = (["red", "big"], ["blue"], [], ["blue", "small"])
SMALL = FileLimits(expanded_bytes=1_000_000, columns=50, text_characters=1000)


def write_arrow(table: pa.Table, path: Path) -> None:
    with pa.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table)


WRITERS: dict[str, Callable[[pa.Table, Path], Any]] = {"parquet": pq.write_table, "arrow": write_arrow}
READERS: dict[str, Any] = {"parquet": read_parquet, "arrow": read_arrow}


def file_of(folder: Path, tags: pa.Array, source: str = "parquet") -> str:
    path = folder / f"d.{source}"
    WRITERS[source](pa.table({"a.b": pa.array(range(len(tags))), "tags": tags}), path)
    return str(path)


def profile_of(folder: Path, tags: pa.Array, source: str = "parquet", **task: Any) -> DatasetFile:
    return profiled(folder, source=source, path=file_of(folder, tags, source), target="tags", **task)


@pytest.mark.parametrize("source", ["parquet", "arrow"])
def test_lists_are_a_target_with_several_labels(tmp_path: Path, source: str) -> None:
    file = profile_of(tmp_path, pa.array(TAGS * 10), source)
    profile = Profile.model_validate(file.profile)
    assert (profile.task, profile.class_labels) == ("multilabel", ("big", "blue", "red", "small"))
    y = load_dataset(file, present(spec_of("tags").data)).y
    assert y[:4].tolist() == [[1, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 0], [0, 1, 0, 1]]


LISTS: dict[str, tuple[pa.Array, list[str]]] = {
    "whole numbers": (pa.array([[1, 20], [], None]), ["[1,20]", "[]", ""]),
    "booleans": (pa.array([[True, False], None, []]), ["[true,false]", "", "[]"]),
    "long lists": (pa.array([["é", "b"], []], pa.large_list(pa.large_string())), ['["é","b"]', "[]"]),
    "of one length": (pa.array([["a", "b"], None], pa.list_(pa.string(), 2)), ['["a","b"]', ""]),
    "dictionaries": (
        pa.ListArray.from_arrays([0, 2, 3], pa.array(["a", "b", "a"]).dictionary_encode()),
        ['["a","b"]', '["a"]'],
    ),
}


@pytest.mark.parametrize("is_spilled", [False, True], ids=["in memory", "in parts"])
@pytest.mark.parametrize("source", ["parquet", "arrow"])
@pytest.mark.parametrize("name", LISTS)
def test_lists_are_read_as_json_lines_has_them(
    tmp_path: Path, name: str, source: str, is_spilled: bool
) -> None:
    tags, texts = LISTS[name]
    path = Path(file_of(tmp_path, tags, source))
    spill = Spill(tmp_path, from_bytes=1) if is_spilled else None
    table = READERS[source](path, FileLimits(), spill)
    assert table.columns["tags"].tolist() == texts


def test_a_list_that_is_missing_is_a_gap_of_the_target(tmp_path: Path) -> None:
    tags = pa.array([*TAGS, None] * 8)
    with pytest.raises(TargetGaps, match="no value in 8 of 40 rows, the first in row 5"):
        profile_of(tmp_path, tags)
    profile = Profile.model_validate(profile_of(tmp_path, tags, rows_without_target="leave_out").profile)
    assert (profile.rows, profile.rows_without_target) == (32, 8)


REFUSED: dict[str, tuple[pa.Array, str]] = {
    "a missing value in a list": (
        pa.array([["a"], ["b", None]]),
        "column 'tags' has a list with a missing value in row 2",
    ),
    "a list of lists": (pa.array([[["a"]], [["b"]]]), r"column 'tags' contains list<.*list<.*not supported"),
    "measures": (pa.array([[0.5, 1.5]] * 2), r"column 'tags' contains list<.*double.*except lists of words"),
    "objects": (pa.array([[{"x": 1}]] * 2), r"column 'tags' contains list<.*struct.*not supported"),
    "too many values": (pa.array([[1], [1] * 1001]), "has a list of 1,001 values in row 2; at most 1,000"),
    "too long a text": (pa.array([["a"], ["x" * 999]]), "has a text of 1,003 characters in row 2"),
    "words that are repeated": (
        pa.array([["x" * 900]] * 4000),
        "column 'tags' expands to 3,696,000 bytes; at most 1,000,000",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_other_lists_are_refused_with_the_column(tmp_path: Path, name: str) -> None:
    tags, message = REFUSED[name]
    with pytest.raises(BadData, match=message):
        read_parquet(Path(file_of(tmp_path, tags)), SMALL)


def test_a_parquet_file_that_repeats_a_number_in_its_lists_is_refused_before_it_is_read(
    tmp_path: Path,
) -> None:
    path = file_of(tmp_path, pa.array([[7] * 500] * 400))
    with pytest.raises(BadData, match=r"expands to 1,603,200 bytes"):
        read_parquet(Path(path), SMALL)
