"""A pasted notebook: its lines that run are named, its definitions are kept, its search is read."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from jobs.messages.code import MAX_FOUND, CodeFound, ReadRequest, SentFile
from jobs.models import CodeVersion
from jobs.spec.experiment import ExperimentSpec
from tests.code.making import read_files
from tests.factories import make_dataset
from tests.markup import squeezed
from tests.people import People, browser_of
from workers.code_reader.modules import Module
from workers.code_reader.reading import read
from workers.system.archives import BadArchive

TUTORIAL = '''!pip install -q keras-tuner
%matplotlib inline
"""A tutorial."""
import keras
import keras_tuner as kt
from keras import layers

keras.utils.set_random_seed(1)
(img_train, label_train), (img_test, label_test) = keras.datasets.fashion_mnist.load_data()
img_train = img_train.astype("float32") / 255.0
CLASSES = 10
SIZES = [64]
SIZES.append(32)
print(img_train.shape); WIDTH = 2


# The model.
def model_builder(hp):
    model = keras.Sequential([layers.Flatten()])
    model.add(layers.Dense(hp.Choice("units", SIZES) * WIDTH, activation="relu"))
    model.add(layers.Dense(CLASSES))
    return model


tuner = kt.Hyperband(model_builder, objective="val_accuracy", max_epochs=10, factor=3,
                     directory="my_dir", project_name="intro")
stop_early = keras.callbacks.EarlyStopping(monitor="val_loss", patience=5)
tuner.search(img_train, label_train, epochs=50, validation_split=0.2,
             callbacks=[stop_early, keras.callbacks.TensorBoard("logs")])
best_hps = tuner.get_best_hyperparameters(num_trials=1)[0]
model = tuner.hypermodel.build(best_hps)
history = model.fit(img_train, label_train, epochs=50)
for value in history.history["val_accuracy"]:
    print(value)
'''


def found_in(folder: Path, text: str) -> CodeFound:
    return read_files(folder, {"model.py": text}).found


def definitions_of(folder: Path, text: str, name: str = "model.py") -> tuple[str, CodeFound]:
    """Return the kept part of a file, and the findings about it."""
    (folder / "sent").write_text(text)
    (folder / "definitions").mkdir()
    sent = SentFile(place=str(folder / "sent"), path=name)
    reading = read(ReadRequest(files=[sent], into=str(folder / "definitions"), definitions_only=True))
    return (folder / "definitions" / "0").read_text(), reading.found


def test_the_lines_that_run_are_named(tmp_path: Path) -> None:
    found = found_in(tmp_path, TUTORIAL)
    assert [notice.line for notice in found.runs] == [1, 2, 9, 10, 14, 25, 28, 30, 31, 32, 33]
    assert found.runs[0].message == "!pip install -q keras-tuner"
    assert "load_data" in found.runs[2].message
    assert not found.problems
    (entry,) = found.entries
    assert entry.name == "model_builder" and "keep the definitions" in entry.note


def test_the_definitions_are_kept_with_the_constants_that_they_need(tmp_path: Path) -> None:
    text, found = definitions_of(tmp_path, TUTORIAL)
    assert (
        text
        == '''"""A tutorial."""
import keras
from keras import layers

keras.utils.set_random_seed(1)
CLASSES = 10
SIZES = [64]
SIZES.append(32)
WIDTH = 2


# The model.
def model_builder(hp):
    model = keras.Sequential([layers.Flatten()])
    model.add(layers.Dense(hp.Choice("units", SIZES) * WIDTH, activation="relu"))
    model.add(layers.Dense(CLASSES))
    return model
'''
    )
    assert [entry.note for entry in found.entries] == [""]
    assert not found.runs and not found.notices


def test_the_search_is_read_with_its_trials_epochs_and_early_stopping(tmp_path: Path) -> None:
    search = found_in(tmp_path, TUTORIAL).search
    assert search is not None
    assert search.model_dump(exclude_defaults=True) == {
        "path": "model.py", "line": 25, "tuner": "Hyperband", "entry": "model_builder",
        "metric": "val_accuracy", "max_epochs": 10, "factor": 3, "epochs": 50, "validation_split": 0.2,
        "early_stopping": {"monitor": "val_loss", "patience": 5},
        "left_out": ["the callback TensorBoard"],
    }  # fmt: skip


def test_constants_and_objectives_with_a_direction_are_read(tmp_path: Path) -> None:
    text = """
import keras_tuner
from keras_tuner import Objective
class Net(keras_tuner.HyperModel):
    def build(self, hp): ...
TRIALS = 7
net = Net()
tuner = keras_tuner.BayesianOptimization(net, Objective("val_f1", "max"), TRIALS, executions_per_trial=2,
                                         seed=3, tune_new_entries=False)
tuner.search(x, y, epochs=N, batch_size=64)
"""
    search = found_in(tmp_path, text).search
    assert search is not None
    assert search.model_dump(exclude_defaults=True) == {
        "path": "model.py", "line": 8, "tuner": "BayesianOptimization", "entry": "Net", "metric": "val_f1",
        "direction": "max", "max_trials": 7, "executions": 2, "seed": 3, "batch_size": 64,
        "left_out": ["tune_new_entries=False: fix the other hyperparameters in the form", "epochs"],
    }  # fmt: skip


def test_a_tuner_is_found_in_a_cell_without_its_import(tmp_path: Path) -> None:
    text = "def make(hp): ...\ntuner = kt.RandomSearch(make, 'val_loss', max_trials=4)\ntuner.search(x, y)\n"
    found = found_in(tmp_path, text)
    assert found.search is not None and (found.search.tuner, found.search.max_trials) == ("RandomSearch", 4)
    assert found.runs


@pytest.mark.parametrize("tuner", ["keras_tuner.Tuner", "kt.SklearnTuner", "shop.RandomSearch"])
def test_tuners_whose_search_is_no_experiment_are_not_read_as_one(tmp_path: Path, tuner: str) -> None:
    assert found_in(tmp_path, f"def make(hp): ...\ntuner = {tuner}(make)\ntuner.search()\n").search is None


def test_a_value_that_only_the_data_give_is_named(tmp_path: Path) -> None:
    text = """
import keras
from keras import layers
(x, y), _ = keras.datasets.mnist.load_data()
classes = len(set(y))
normalizer = layers.Normalization()
normalizer.adapt(x)
def make(hp):
    return keras.Sequential([normalizer, layers.Dense(classes)])
"""
    messages = [(notice.line, notice.message) for notice in found_in(tmp_path, text).notices]
    why = "which is computed from the data or from a training: write its value instead"
    names = ["classes", "normalizer"]
    assert messages == [(line, f"the definitions use {name}, {why}") for line, name in enumerate(names, 5)]
    kept, _ = definitions_of(tmp_path, text)
    assert "load_data" not in kept and "adapt" not in kept


def test_a_version_of_definitions_names_what_no_line_defines(tmp_path: Path) -> None:
    text = """
import keras
import numpy as np
x, y = load_data()
NUM_CLASSES = len(np.unique(y))
def head(inputs):
    return keras.layers.Dense(NUM_CLASSES)(inputs)
def build_model(hp):
    return head(keras.Input((hp.Int("size", 1, 4),)))
def plot():
    print(y)
"""
    _, found = definitions_of(tmp_path, text)
    (notice,) = [notice for notice in found.notices if "NUM_CLASSES" in notice.message]
    assert notice.message == (
        "no line of the file defines NUM_CLASSES, which head uses: define it, or write its value"
    )
    # A function that no entry uses needs nothing.
    assert not any("plot" in notice.message for notice in found.notices)
    assert (tmp_path / "definitions" / "0").read_text().splitlines()[(notice.line or 0) - 1].strip() == (
        "return keras.layers.Dense(NUM_CLASSES)(inputs)"
    )


@pytest.mark.parametrize(
    "text",
    [
        "import keras\nSIZE = 3\nkeras.config.set_floatx('float32')\ndef make(hp): ...\nprint('loaded')\n",
        "def make(hp): ...\ndef main():\n    tuner.search()\nif __name__ == '__main__':\n    main()\n",
        "import os\nos.environ['A'] = 'b'\ndef make(hp): ...\n",
    ],
)
def test_ordinary_code_is_no_notebook(tmp_path: Path, text: str) -> None:
    found = found_in(tmp_path, text)
    assert not found.runs and not found.notices
    assert definitions_of(tmp_path, text)[0] == text


def test_a_script_may_train_on_its_own(tmp_path: Path) -> None:
    text = "import tensorflow as tf\nmodel = tf.keras.Sequential()\nmodel.fit(x, y)\n"
    assert not found_in(tmp_path, f"{text}args = parser.parse_args()\n").runs
    assert not found_in(tmp_path, text.replace("tf.keras.Sequential", "tf.Module")).runs


def test_the_cells_of_a_notebook_become_a_file(tmp_path: Path) -> None:
    cells = [
        {"cell_type": "markdown", "source": ["# Title"]},
        {"cell_type": "code", "source": ["%%bash\n", "pip install x"]},
        {"cell_type": "code", "source": ["!pip install x\n", "import keras"]},
        {"cell_type": "code", "source": "def make(hp):\n    return hp\n"},
    ]
    reading = read_files(tmp_path, {"tune.ipynb": json.dumps({"cells": cells, "nbformat": 4})})
    assert [file.path for file in reading.files] == ["tune.py"]
    assert (tmp_path / "kept" / "0").read_text().startswith("!pip install x\nimport keras\n\n\ndef make(hp):")
    assert [notice.line for notice in reading.found.runs] == [1]
    with pytest.raises(BadArchive, match=r"'a\.ipynb' is no notebook"):
        read_files(tmp_path, {"a.ipynb": "{"})


@pytest.mark.parametrize("before", ["", "\n  ", "\ufeff"])
def test_a_notebook_that_is_pasted_as_text_is_read_by_its_cells(tmp_path: Path, before: str) -> None:
    cells = [{"cell_type": "code", "source": ["def build_model(hp):\n", "    return hp.Int('a', 1, 2)"]}]
    text = before + json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, indent=1)
    reading = read_files(tmp_path, {"model.py": text})
    assert [file.path for file in reading.files] == ["model.py"]
    assert [entry.name for entry in reading.found.entries] == ["build_model"]
    assert (tmp_path / "kept" / "0").read_text().startswith("def build_model(hp):\n")


def test_other_text_in_braces_is_no_notebook(tmp_path: Path) -> None:
    for text in ('{"cells": []}', '{"nbformat": 4}', "{1, 2}\n", "{"):
        read_files(tmp_path, {"model.py": text})
        assert (tmp_path / "kept" / "0").read_text() == text


def test_lines_that_only_begin_like_those_of_a_notebook_stay(tmp_path: Path) -> None:
    text = '''!pip install x
import keras
print("%s"
      % 3)
def make(hp):
    """Make it.

    %timeit is no command here,
    !nor this




    and these lines stay.
    """
    %cd x
    return keras.Input((hp
        % 3,))
files = !ls
'''
    found = found_in(tmp_path, text)
    assert not found.problems
    assert [notice.line for notice in found.runs] == [1, 16, 19]
    kept, _ = definitions_of(tmp_path, text)
    assert kept.partition("def make")[2] == text.partition("def make")[2].partition("files =")[0].replace(
        "    %cd x", "    pass  # %cd x"
    )


def test_numbers_that_cannot_be_stored_are_left_out_of_a_search(tmp_path: Path) -> None:
    digits = "9" * 400
    text = f"""import keras, keras_tuner as kt
def make(hp): ...
stop = keras.callbacks.EarlyStopping(patience=3, min_delta={digits})
tuner = kt.RandomSearch(make, "val_loss", max_trials=1e999, seed={digits})
tuner.search(1, 2, epochs=5, callbacks=[stop])
"""
    search = found_in(tmp_path, text).search
    assert search is not None and search.early_stopping is not None
    assert (search.max_trials, search.seed, search.epochs) == (None, None, 5)
    assert (search.early_stopping.patience, search.early_stopping.min_delta) == (3, 0.0)
    assert {"max_trials", "seed"} <= set(search.left_out)


def test_the_notices_of_a_long_notebook_are_bounded_and_read_their_own_lines_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "def make(hp): ...\n" + "model.fit(1)\n" * 2_000
    # The whole file for each notice would be a million lines here.
    monkeypatch.setattr(Module, "lines", lambda _: pytest.fail("all lines are read"))
    assert len(found_in(tmp_path, text).runs) == MAX_FOUND


def test_a_syntax_error_beside_lines_of_a_notebook_is_named(tmp_path: Path) -> None:
    (problem,) = found_in(tmp_path, "!ls\ndef make(hp)\n    ...\n").problems
    assert problem.line == 2


def stored(browser: Client, text: str) -> Any:
    body = {"project": "yard", "name": "net", "files": [{"path": "src/model.py", "text": text}]}
    answer = browser.post("/api/v1/code", body, content_type="application/json")
    assert answer.status_code == 201, answer.content
    return answer.json()


def test_one_click_keeps_the_definitions_and_the_search_is_proposed(people: People) -> None:
    make_dataset("flowers", project=people.project, by=people.member)
    browser = browser_of(people.trainer)
    sent = stored(browser, TUTORIAL)
    assert [run["line"] for run in sent["runs"]] == [1, 2, 9, 10, 14, 25, 28, 30, 31, 32, 33]
    page = squeezed(browser.get(f"/code/{sent['digest']}?project=yard").content.decode())
    assert "model.py, line 9" in page and "Keep the definitions" in page
    assert "Hyperband of <code>model_builder</code>" in page and "the callback TensorBoard" in page
    answer = browser.post(f"/code/{sent['digest']}/definitions?project=yard")
    assert answer.status_code == 303, answer.content
    kept = CodeVersion.objects.order_by("-pk")[0]
    assert (kept.name, [file.path for file in kept.files.all()]) == ("net", ["model.py"])
    page = squeezed(browser.get(answer["Location"]).content.decode())
    assert "Keep the definitions" not in page
    start = f"/p/yard/experiments/new?code={kept.digest}&entry=model_builder"
    assert start.replace("&", "&amp;") in page or start in page
    spec = json.loads(browser.get(f"{start}&dataset=flowers").context["entries"]["spec"])
    assert spec["model"] == {"kind": "code", "digest": kept.digest, "entry": "model_builder"}
    assert spec["search"] == {
        "algorithm": "hyperband", "objective": {"metric": "val_accuracy", "direction": "max"},
        # Its three brackets, with 9, 5 and 3 trials.
        "max_trials": 17, "executions_per_trial": 1, "options": {"factor": 3, "iterations": 1},
    }  # fmt: skip
    assert spec["fit"] == {
        "epochs": 10, "batch_size": 32,
        "early_stopping": {"monitor": "val_loss", "patience": 5, "min_delta": 0.0, "restore_best": False},
    }  # fmt: skip
    assert spec["data"]["split"]["validation"] == 0.2
    ExperimentSpec.model_validate(spec)


def test_definitions_are_kept_by_rest_once(people: People) -> None:
    browser = browser_of(people.member)
    digest = stored(browser, TUTORIAL)["digest"]
    first = browser.post(f"/api/v1/code/{digest}/definitions")
    assert (first.status_code, first.json()["runs"]) == (201, [])
    assert first.json()["search"]["tuner"] == "Hyperband"
    assert browser.post(f"/api/v1/code/{digest}/definitions").status_code == 200
    again = browser.post(f"/api/v1/code/{first.json()['digest']}/definitions")
    assert (again.status_code, again.json()["code"]) == (409, "definitions_only")
    assert browser_of(people.viewer).post(f"/api/v1/code/{digest}/definitions").status_code == 403


def test_code_without_entries_says_what_was_looked_for_on_its_page(people: People) -> None:
    browser = browser_of(people.member)
    sent = stored(browser, "def make(units): ...\n")
    assert "a function that takes hp" in sent["notices"][0]["message"]
    assert "a function that takes hp" in browser.get(f"/code/{sent['digest']}?project=yard").content.decode()


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("from tensorflow import keras\n", "import keras\n"),
        ("from tensorflow import keras as k\n", "import keras as k\n"),
        ("from tensorflow.keras import layers, models\n", "from keras import layers, models\n"),
        ("from tensorflow.keras.layers import (\n    Dense,\n    LSTM as L,\n)\n",
         "from keras.layers import Dense, LSTM as L\n"),
        ("import tensorflow.keras as keras\n", "import keras as keras\n"),
        ("import kerastuner as kt\n", "import keras_tuner as kt\n"),
        ("from kerastuner.tuners import Hyperband\n", "from keras_tuner.tuners import Hyperband\n"),
        ("import tensorflow as tf\nx = tf.keras.layers.Dense\n\n\ndef f():\n    return x, tf.keras.Model\n",
         "import keras\nx = keras.layers.Dense\n\n\ndef f():\n    return x, keras.Model\n"),
        ("import tensorflow as tf; x = 1\nimport tensorflow as tf\ny = tf.keras.Input, tf.keras.Model\n"
         "def f():\n    return x, y\n",
         "import keras; x = 1\nimport keras\ny = keras.Input, keras.Model\ndef f():\n    return x, y\n"),
        ("import tensorflow as tf\n\n\ndef k():\n    return tf.constant(1), tf.keras.Model\n",
         "import tensorflow as tf\n\n\ndef k():\n    return tf.constant(1), tf.keras.Model\n"),
    ],
)  # fmt: skip
def test_imports_from_tensorflow_are_named_and_become_those_of_keras(
    tmp_path: Path, text: str, kept: str
) -> None:
    builder = "def make(hp):\n    return keras, k, layers, models, Dense, L, kt, Hyperband\n"
    lines = [
        number for number, line in enumerate(text.splitlines(), 1) if line.startswith(("import", "from"))
    ]
    assert [notice.line for notice in found_in(tmp_path, text + builder).runs] == lines
    changed, _ = definitions_of(tmp_path, text + builder)
    kept += builder
    assert changed.replace("\n\n", "\n").strip() == kept.replace("\n\n", "\n").strip()


@pytest.mark.parametrize(
    "block", ["try:\n{}except ImportError:\n    pass\n", "if True:\n{}", "with scope:\n{}"]
)
def test_the_definitions_inside_of_a_block_are_kept(tmp_path: Path, block: str) -> None:
    inside = (
        "    class Hyper(kt.HyperModel):\n"
        "        def build(self, hp):\n"
        "            return keras.Model(hp, UNITS)\n"
        "        def fit(self, hp, model, *args, **kwargs):\n"
        "            return model.fit(*args, **kwargs)\n"
    )
    text = (
        "import keras\nimport keras_tuner as kt\nscope = keras.name_scope('a')\nUNITS = 3\n"
        + block.format(inside)
    )
    found = found_in(tmp_path, f"{text}model = Hyper().build(1)\nmodel.fit(1)\n")
    assert [notice.message for notice in found.runs] == ["model.fit(1)"]
    kept, _ = definitions_of(tmp_path, f"{text}model = Hyper().build(1)\nmodel.fit(1)\n")
    assert inside in kept and "UNITS = 3" in kept and "model.fit(1)" not in kept


def test_a_function_in_a_block_that_needs_the_data_is_kept_and_the_data_are_named(tmp_path: Path) -> None:
    text = """import keras
x = keras.utils.get_file("a")
if x:
    print(x)
if True:
    def make(hp):
        return keras.Input(x.shape)
"""
    kept, found = definitions_of(tmp_path, text)
    assert "def make(hp):" in kept and "print(x)" not in kept
    assert not found.problems
    (tmp_path / "whole").mkdir()
    assert "the definitions use x" in found_in(tmp_path / "whole", text).notices[0].message


def test_names_of_a_function_alone_are_not_taken_for_those_of_the_module(tmp_path: Path) -> None:
    text = """import keras
def build_model(hp):
    model = keras.Sequential([keras.Input(size) for size in hp])
    try:
        best = 1
    except ValueError as error:
        print(error)
    return lambda history: (history, model, best)
best = tuner.get_best_hyperparameters(5)
model = build_model(best[0])
history = model.fit(1)
size = history.size
error = model.evaluate(1)
"""
    assert not found_in(tmp_path, text).notices
    shared = text.replace("    try:\n", "    global model\n    try:\n")
    assert [notice.message[:25] for notice in found_in(tmp_path, shared).notices] == [
        "the definitions use model"
    ]


def test_the_callbacks_of_a_search_and_imports_without_use_are_left_out(tmp_path: Path) -> None:
    text = """import IPython
import keras
import matplotlib.pyplot as plt
from keras import layers
class Clear(keras.callbacks.Callback):
    def on_train_end(self, logs=None):
        IPython.display.clear_output()
class Kept(keras.callbacks.Callback): ...
def make(hp):
    return layers.Dense(1), Kept
make(hp).fit(x, y, callbacks=[Clear()])
"""
    assert (
        definitions_of(tmp_path, text)[0]
        == """import keras
from keras import layers
class Kept(keras.callbacks.Callback): ...
def make(hp):
    return layers.Dense(1), Kept
"""
    )


def test_code_that_brings_tensorflow_may_import_it(tmp_path: Path) -> None:
    files = {
        "model.py": "import tensorflow as tf\ndef make(hp): ...\n",
        "requirements.txt": "tensorflow>=2.16\n",
    }
    assert not read_files(tmp_path, files).found.runs


@pytest.mark.parametrize("between", ["", "import keras as k\n", "import tensorflow as other\n"])
def test_imports_that_are_repeated_in_several_cells_change_each_use_once(
    tmp_path: Path, between: str
) -> None:
    cell = "import tensorflow as tf\n"
    builder = "def make(hp):\n    return tf.keras.Sequential([tf.keras.layers.Dense(1)])\n"
    kept, _ = definitions_of(tmp_path, cell + between + cell + builder)
    assert kept.endswith("def make(hp):\n    return keras.Sequential([keras.layers.Dense(1)])\n")


SEVERAL = """import keras_tuner as kt

def first(hp): ...

class Net(kt.HyperModel):
    def build(self, hp): ...

hypermodel = Net()
tuner = kt.RandomSearch(first, objective="val_loss", max_trials=3)
tuner.search(x, y, epochs=2)
tuner = kt.BayesianOptimization(hypermodel, kt.Objective("val_f1", "max"), max_trials=4)
hypermodel = kt.applications.HyperResNet(input_shape=(8, 8, 1), classes=3)
tuner.search(x, y, epochs=7, batch_size=64)
tuner = kt.GridSearch(hypermodel, "val_accuracy")
tuner.search(x, y)
"""


def test_each_entry_has_the_search_of_its_own_tuner(tmp_path: Path) -> None:
    found = found_in(tmp_path, SEVERAL)
    described = [(each.tuner, each.entry, each.max_trials, each.epochs) for each in found.searches]
    assert described[0] == ("RandomSearch", "first", 3, 2)
    assert described[2] == ("GridSearch", "HyperResNet", None, None)
    first, net = found.search_for("first"), found.search_for("Net")
    assert first is not None and (first.metric, first.batch_size) == ("val_loss", None)
    assert net is not None and (net.metric, net.direction, net.epochs) == ("val_f1", "max", 7)
    assert found.search == found.searches[2]


def test_a_model_of_keras_tuner_itself_is_named_as_a_template(tmp_path: Path) -> None:
    (notice,) = found_in(tmp_path, SEVERAL).notices
    assert (notice.line, notice.message) == (
        14,
        "HyperResNet needs no code: an experiment has it as the template hyper_resnet",
    )


def test_an_entry_of_another_file_has_its_search(tmp_path: Path) -> None:
    text = "import keras_tuner\nimport nets\ntuner = keras_tuner.RandomSearch(nets.build, 'val_loss')\n"
    found = read_files(tmp_path, {"nets.py": "def build(hp): ...\n", "run.py": f"{text}def other(hp): ...\n"})
    search = found.found.search_for("build")
    assert search is not None and search.path == "run.py"


def test_findings_of_an_earlier_release_have_their_one_search() -> None:
    found = CodeFound.model_validate(
        {"search": {"path": "model.py", "line": 3, "tuner": "RandomSearch", "entry": "build"}}
    )
    assert found.search_for("other") is None
    search = found.search_for("build")
    assert search is not None and search.line == 3


def test_a_tuner_of_its_own_is_named_since_no_experiment_calls_it(tmp_path: Path) -> None:
    text = (
        "import keras_tuner as kt\ndef build(hp): ...\n"
        "class Own(kt.RandomSearch):\n    def run_trial(self, trial): ...\n"
    )
    (notice,) = found_in(tmp_path, text).notices
    assert notice.line == 3
    assert "Own is a tuner: no experiment calls its run_trial; train in fit" in notice.message
    assert not found_in(tmp_path, f"{text}if __name__ == '__main__':\n    Own(build)\n").notices


def test_keras_is_imported_itself_if_only_lines_that_run_use_the_rest_of_tensorflow(tmp_path: Path) -> None:
    text = """import tensorflow as tf
def build(hp):
    return tf.keras.Sequential([tf.keras.layers.Dense(hp.Int("units", 4, 8))])
rows = tf.data.Dataset.from_tensor_slices(load_data())
tuner.search(rows)
"""
    kept, found = definitions_of(tmp_path, text)
    assert kept.startswith("import keras\n") and "tf." not in kept
    assert not found.runs


def test_an_imported_module_is_not_taken_for_one_that_the_data_give(tmp_path: Path) -> None:
    text = "import other\ndef build(hp):\n    return other.net(hp)\nother.fit(read_csv('a.csv'))\n"
    kept, found = definitions_of(tmp_path, text)
    assert "import other" in kept and not found.notices
    assert not found_in(tmp_path, text).notices


def test_a_training_between_two_models_of_one_name_needs_no_data_in_the_definitions(tmp_path: Path) -> None:
    text = """import keras
x = keras.datasets.mnist.load_data()
model = keras.Sequential()
model.fit(x)
model = keras.Sequential([keras.layers.Dense(3)])
def build(hp):
    return keras.Sequential([model, keras.layers.Dense(hp.Int("units", 4, 8))])
"""
    assert not found_in(tmp_path, text).notices


SEARCHED = "import keras_tuner as kt\ndef make(hp): ...\n"


@pytest.mark.parametrize(
    ("made", "entry", "left_out"),
    [
        (
            "kt.RandomSearch(make, objective=['val_loss', kt.Objective('val_auc', 'max')])",
            "make",
            ["val_auc"],
        ),
        ("kt.RandomSearch(functools.partial(make, n=3), objective='val_loss')", None, []),
        ("kt.RandomSearch(lambda hp: make(hp), objective='val_loss')", None, []),
    ],
)
def test_what_a_search_cannot_take_over_is_not_taken_for_something_else(
    tmp_path: Path, made: str, entry: str | None, left_out: list[str]
) -> None:
    search = found_in(tmp_path, f"{SEARCHED}import functools\ntuner = {made}\ntuner.search(1, 2)\n").search
    assert search is not None and search.entry == entry
    assert search.left_out == [f"the objective {name}" for name in left_out]


def test_a_question_to_the_notebook_is_no_python(tmp_path: Path) -> None:
    found = found_in(tmp_path, f"{SEARCHED}make?\nkt.Tuner??\n")
    assert not found.problems
    assert [notice.message for notice in found.runs] == ["make?", "kt.Tuner??"]
