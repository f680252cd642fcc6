"""Data that user code loads: its function's values, the file with its rows, and each refusal."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jobs.kinds.code_data.payload import CodeDataResult, CodeDataTask
from jobs.messages.task import DatasetFile
from jobs.spec.data.columns import ColumnRequest
from jobs.spec.data.profile import Profile
from tests import own_code
from tests.engine.helpers import RecordingReport, profiled, spec_of
from tests.present import present
from workers.engine.data.dataset import Dataset, load_dataset
from workers.engine.errors import EngineError
from workers.engine.tasks import code_data

IMPORTS = "import sys\nimport numpy as np\nimport pandas as pd\n\n"
BY_PART = (
    IMPORTS
    + """
def load_data(split):
    rows = {"train": 40, "validation": 20, "test": 10}[split]
    x = np.full((rows, 3), rows, "float32")
    return x, np.array(["no", "maybe"])[np.arange(rows) % 2]
"""
)
AS_KERAS = (
    IMPORTS
    + """
def load_data():
    images = np.zeros((50, 4, 4), "uint8")
    labels = np.arange(50) % 5
    return (images, labels.reshape(-1, 1)), (images[:10], labels[:10])
"""
)
A_TABLE = (
    IMPORTS
    + """
def load_data(split):
    if split != "train":
        return None
    frame = pd.read_csv("houses.csv")
    return frame.drop(columns="price"), frame["price"]
"""
)
HOUSES = "size,town,part,price\n" + "".join(f"{i % 17},{'ab'[i % 2]},east,{i * 10.5}\n" for i in range(60))


class Loaded:
    """A function's rows, after its task and its file's profile."""

    def __init__(self, folder: Path, text: str, **task: Any) -> None:
        code = own_code.code_in(folder / "code", text)
        (folder / "code" / "houses.csv").write_text(HOUSES)
        work = folder / "work"
        work.mkdir()
        self.report = RecordingReport(work)
        request = CodeDataTask(folder=str(work), code=code, entry="load_data", **task)
        before = Path.cwd()
        # As it is sent to the supervisor.
        returned = json.loads(json.dumps(code_data.run(request, self.report)))
        assert Path.cwd() == before
        self.result = CodeDataResult.model_validate(returned)
        ((_, file), _), *_ = self.report.of("artifact")
        named = [ColumnRequest(name=self.result.part, role="split")] if self.result.part else []
        self.file: DatasetFile = profiled(
            folder / "profile",
            source=self.result.source,
            path=str(work / file),
            target=self.result.target,
            columns=tuple(named),
        )
        self.profile = Profile.model_validate(self.file.profile)

    def dataset(self) -> Dataset:
        return load_dataset(self.file, present(spec_of("own").data))


def test_the_parts_of_the_code_are_those_of_each_experiment(tmp_path: Path) -> None:
    loaded = Loaded(tmp_path, BY_PART)
    assert loaded.result.rows == {"train": 40, "validation": 20, "test": 10}
    assert (loaded.profile.part_rows, loaded.profile.features) == ((40, 20, 10), ("x",))
    assert loaded.profile.class_labels == ("maybe", "no")
    dataset = loaded.dataset()
    assert [{*dataset.x[rows].ravel().tolist()} for rows in dataset.parts] == [{40.0}, {20.0}, {10.0}]


def test_the_levels_of_a_named_index_are_columns_as_in_parquet(tmp_path: Path) -> None:
    text = A_TABLE.replace('drop(columns="price")', 'drop(columns="price").set_index(%s)')
    for number, (index, names) in enumerate(
        [("['town', 'part']", ["town", "part", "size"]), ("'town'", ["town", "size", "part"]),
         ("np.array([f'r{i}' for i in range(60)])", ["index", "size", "town", "part"]),
         ("np.arange(60) + 5", ["size", "town", "part"])]
    ):  # fmt: skip
        folder = tmp_path / str(number)
        folder.mkdir()
        columns = [column.name for column in Loaded(folder, text % index).profile.columns]
        assert [name for name in columns if name != "y"] == names


def test_a_function_without_arguments_returns_parts_as_those_of_keras(tmp_path: Path) -> None:
    loaded = Loaded(tmp_path, AS_KERAS)
    assert loaded.result.rows == {"train": 40, "validation": 10, "test": 10}
    assert (loaded.profile.kind, loaded.profile.input_shape) == ("image", (4, 4, 1))
    dataset = loaded.dataset()
    assert np.bincount(dataset.y[dataset.parts.validation]).tolist() == [2] * 5, "drawn class by class"
    ((code, message), _), *_ = loaded.report.of("warning")
    assert (code, "no validation rows, so 10 of the 50 training rows" in message) == ("part_made", True)


def test_a_table_is_read_from_a_file_beside_the_code_and_split_by_each_experiment(tmp_path: Path) -> None:
    loaded = Loaded(tmp_path, A_TABLE)
    assert (loaded.result.source, loaded.result.part) == ("parquet", None)
    types = {column.name: (column.role, column.type) for column in loaded.profile.columns}
    assert types == {
        "size": ("feature", "integer"),
        "town": ("feature", "category"),
        "part": ("feature", "category"),
        "y": ("target", "number"),
    }
    assert (loaded.profile.task, loaded.profile.part_rows) == ("regression", None)
    assert sum(map(len, loaded.dataset().parts)) == 60


def test_a_table_with_parts_has_a_column_for_them_beside_one_of_the_same_name(tmp_path: Path) -> None:
    loaded = Loaded(tmp_path, A_TABLE.replace('split != "train"', 'split == "test"'))
    assert (loaded.result.part, loaded.result.rows) == ("part_", {"train": 48, "validation": 60, "test": 12})
    assert loaded.profile.features == ("size", "town", "part")
    assert [len(rows) for rows in loaded.dataset().parts] == [48, 60, 12]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            "raise KeyError('no such city')",
            "load_data('train') failed: KeyError: 'no such city' (model.py, line 6)",
        ),
        (
            "raise OSError('no file') from __import__('socket').gaierror(-3, 'no such host')",
            "(model.py, line 6); code reaches other hosts only if its project allows network",
        ),
        ("sys.exit(3)", "load_data('train') failed: the code called sys.exit(3)"),
        (
            "return bytearray(2**60), 1",
            "load_data('train') needs more memory than its run has: MemoryError (model",
        ),
        ("pass", "load_data('train') returned nothing; return two values"),
        ("return np.zeros((4, 2))", "returned a ndarray of the shape (4, 2); return two values"),
        ("return np.zeros((4, 2)), np.zeros(3)", "returned 4 rows in x and 3 in y"),
        ("return np.zeros((0, 2)), np.zeros(0)", "returned no rows"),
        (
            "return [[1, 2], [3]], [0, 1]",
            "x of load_data('train') is no array: its rows have different shapes",
        ),
        (
            "return np.array([[1, {}]] * 2), [0, 1]",
            "x of load_data('train') contains Python objects, the first an int",
        ),
        ("return [[1], [2]], [{}, {}]", "y of load_data('train') contains Python objects, the first a dict"),
        (
            "return np.zeros((3, 1)), [1, None, 2]",
            "y of load_data('train') has missing or infinite values in 1 of 3",
        ),
        ("return np.zeros((3, 1)), [1.5, 2, np.nan]", "the first in row 3"),
        (
            "return [[1.0], [np.inf]], [0, 1]",
            "x of load_data('train') has missing or infinite values in 1 of 2",
        ),
        ("return np.zeros((9, 1)), np.zeros(9)", "target 'y' has only the value 0.0"),
        (
            "return (i for i in range(3)), [1, 2, 3]",
            "x of load_data('train') is a generator; return an array",
        ),
        ("return {'a': [1, 2], 'b': [1]}, [0, 1]", "returned 1 rows in column 'b' of x and 2 in y"),
        (
            "return pd.DataFrame({'a': [{}, {}]}), [0, 1]",
            "column 'a' of x of load_data('train') contains Python objects, the first a dict",
        ),
        (
            "return np.zeros((2, len(split))), [0, 1]",
            "x has rows of the shape (10,) for 'validation', and (5,) for",
        ),
        ("return {split: [1, 2]}, [0, 1]", "x has other columns for 'validation' than for 'train'"),
        ("return np.zeros((200, 1000)), np.arange(200)", "load_data expands to 4,804,800 bytes"),
    ],
)
def test_each_refusal_names_its_cause(tmp_path: Path, body: str, message: str) -> None:
    text = f"{IMPORTS}def load_data(split):\n    {body}\n"
    with pytest.raises(EngineError) as refused:
        Loaded(tmp_path, text, limits={"expanded_bytes": 1_000_000, "table_bytes": 1_000_000})
    assert message in str(refused.value), str(refused.value)
    assert not (tmp_path / "work").exists() or not list((tmp_path / "work").glob("load_data.*"))


def test_a_function_that_returns_no_pairs_says_what_it_may_return(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match=r"must return \(x_train, y_train\), \(x_test, y_test\)"):
        Loaded(tmp_path, "def load_data():\n    return 1\n")


@pytest.mark.parametrize(
    ("part", "message"),
    [("east", "allowed are train, validation and test"), ("train", "no row has the value")],
)
def test_a_column_with_the_role_split_names_all_parts(tmp_path: Path, part: str, message: str) -> None:
    table = tmp_path / "table.csv"
    table.write_text(HOUSES.replace("east", part))
    roles = [ColumnRequest(name="part", role="split")]
    with pytest.raises(EngineError, match=message):
        profiled(tmp_path / "profile", source="csv", path=str(table), target="price", columns=roles)
