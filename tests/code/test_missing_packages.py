"""Definitions that need a package which is not installed are left out, unless an entry reaches them."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.code.making import read_files
from tests.code.test_notebooks import definitions_of, found_in

PASTED = """import random
import matplotlib_absent.pyplot as plt
import torch_absent
from torch_absent.utils.data import Dataset
import keras


def set_seed(seed):
    random.seed(seed)
    torch_absent.manual_seed(seed)


set_seed(1)


class Rows(Dataset):
    def __len__(self):
        return 2


class More(Rows):
    pass


def plot(history):
    plt.plot(history.history["loss"])


def layers_of(hp):
    return [keras.layers.Dense(hp.Int("units", 4, 8))]


def build_model(hp):
    return keras.Sequential(layers_of(hp))
"""
KEPT = """import keras


def layers_of(hp):
    return [keras.layers.Dense(hp.Int("units", 4, 8))]


def build_model(hp):
    return keras.Sequential(layers_of(hp))
"""
RUNS = """from google.colab import drive
import tensorflow as tf
from keras.layers import *

drive.mount("/content/drive")
gpus = tf.config.list_physical_devices("GPU")
print(gpus)


def build_model(hp):
    return Dense(hp.Int("units", 4, 8))
"""
OF_TENSORFLOW = """import tensorflow as tf

tf.random.set_seed(1)
tf.keras.utils.set_random_seed(1)


def to_dataset(x, y):
    return tf.data.Dataset.from_tensor_slices((x, y))


def build_model(hp):
    return tf.keras.Sequential([tf.keras.layers.Dense(1)])
"""


def test_definitions_that_no_entry_reaches_are_left_out_with_their_imports(tmp_path: Path) -> None:
    text, found = definitions_of(tmp_path, PASTED)
    assert text == KEPT
    assert [entry.name for entry in found.entries] == ["layers_of", "build_model"]
    assert not found.runs


def test_the_lines_that_need_them_are_named(tmp_path: Path) -> None:
    found = found_in(tmp_path, PASTED)
    assert [notice.line for notice in found.runs] == [2, 3, 4, 8, 13, 16, 21, 25]
    assert found.runs[3].message == "def set_seed(seed): – needs torch_absent, and no entry uses it"


def test_a_package_that_an_entry_reaches_stays(tmp_path: Path) -> None:
    text = PASTED.replace("return [keras", "Rows()\n    return [keras")
    kept, found = definitions_of(tmp_path, text)
    assert "from torch_absent.utils.data import Dataset" in kept and "class Rows" in kept
    assert "plt" not in kept
    assert not found.runs


def test_keras_is_imported_itself_if_no_entry_reaches_the_rest_of_tensorflow(tmp_path: Path) -> None:
    kept, _ = definitions_of(tmp_path, OF_TENSORFLOW)
    assert kept.startswith("import keras\n\nkeras.utils.set_random_seed(1)\n\n\ndef build_model(hp):")


@pytest.mark.parametrize(
    "more",
    [
        {"requirements.txt": "torch-absent\n"},
        {"train.py": "from model import Rows, plot, set_seed\nset_seed(1)\n"},
        {"torch_absent/__init__.py": "", "matplotlib_absent/__init__.py": ""},
    ],
    ids=["packages of the version", "used by another file", "folders of the version"],
)
def test_nothing_is_left_out_that_may_be_there_or_is_used(tmp_path: Path, more: dict[str, str]) -> None:
    found = read_files(tmp_path, {"model.py": PASTED, **more}).found
    needed = [notice.message for notice in found.runs if "matplotlib" not in notice.message]
    assert not [message for message in needed if "torch_absent" in message]


@pytest.mark.parametrize(
    "text",
    [
        "try:\n    import torch_absent\nexcept ImportError:\n    torch_absent = None\n",
        "def load():\n    import torch_absent\n    return torch_absent\n",
    ],
    ids=["guarded", "inside of a function"],
)
def test_an_import_that_cannot_fail_with_the_file_stays(tmp_path: Path, text: str) -> None:
    assert not found_in(tmp_path, f"{text}\n\ndef build_model(hp): ...\n").runs


def test_code_without_entries_is_not_judged(tmp_path: Path) -> None:
    assert not found_in(
        tmp_path, "import torch_absent\n\n\ndef f():\n    return torch_absent.tensor(1)\n"
    ).runs


def test_a_script_keeps_all_of_it(tmp_path: Path) -> None:
    assert not found_in(tmp_path, f'{PASTED}\n\nif __name__ == "__main__":\n    plot(1)\n').runs


def test_lines_that_only_prepare_a_machine_are_left_out(tmp_path: Path) -> None:
    kept, found = definitions_of(tmp_path, RUNS)
    assert kept.startswith("from keras.layers import *\n") and "google" not in kept and "tf." not in kept
    assert not found.runs
    lines = [notice.line for notice in found_in(tmp_path, RUNS).runs]
    assert lines == [1, 2, 5, 6, 7]


LACKS = "import torch_absent\n\n\ndef show():\n    torch_absent.tensor(1)\n\n\ndef build_model(hp): ...\n"


@pytest.mark.parametrize("text", [LACKS, "def build_model(hp): ...\n"], ids=["lacks a package", "lacks none"])
def test_twice_as_many_files_are_walked_twice_as_often(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    walked: list[ast.AST] = []
    walk = ast.walk

    def counted(node: ast.AST) -> Iterator[ast.AST]:
        walked.append(node)
        return walk(node)

    monkeypatch.setattr(ast, "walk", counted)
    counts = []
    for files in (4, 8):
        walked.clear()
        (tmp_path / str(files)).mkdir()
        read_files(tmp_path / str(files), {f"m{number}.py": text for number in range(files)})
        counts.append(len(walked))
    assert counts[1] == 2 * counts[0]
