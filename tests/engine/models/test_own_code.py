"""User code: the findings of a dry build, and models that are trained, saved and pooled like others."""

import json
from pathlib import Path
from typing import Any

import pytest

from jobs.kinds.dry_build.payload import DryBuildTask
from jobs.messages.task import DatasetFile
from jobs.spec.checks.dry_build import BuiltModel, DataShape
from jobs.spec.space.search_space import FloatParameter
from tests import own_code
from tests.engine.making import ArtifactReport, dataset_file
from workers.engine.errors import CodeFailure
from workers.engine.tasks import dry_build

IRIS = DataShape(kind="vector", task="multiclass", input_shape=(4,), outputs=3)
NUMBERS = DataShape(kind="vector", task="regression", input_shape=(10,), outputs=1)


@pytest.fixture(scope="module")
def iris(tmp_path_factory: pytest.TempPathFactory) -> DatasetFile:
    return dataset_file(tmp_path_factory.mktemp("iris"), "iris")


def dry_built(
    folder: Path,
    text: str,
    entry: str = "build_model",
    shape: DataShape = IRIS,
    args: Any = None,
    model: Any = None,
) -> BuiltModel:
    code = own_code.code_in(folder / "code", text)
    task = DryBuildTask(
        folder=str(folder),
        code=code,
        model={"kind": "code", "digest": code.digest, "entry": entry, "args": args or {}, **(model or {})},
        shape=shape,
        data={"dataset": "any"},
        texts="words",
        dataset=None,
    )
    # As it is sent to the supervisor.
    result = json.loads(json.dumps(dry_build.run(task, ArtifactReport(folder))))
    return BuiltModel.model_validate(result["built"])


def names(built: BuiltModel) -> list[str]:
    return [parameter.name for parameter in built.space]


def test_hyperparameters_that_appear_with_other_values_are_found(tmp_path: Path) -> None:
    built = dry_built(tmp_path, own_code.SEARCH_OF_LAYERS)
    assert set(names(built)) == {
        "hidden", "width_0", "width_1", "width_2", "activation", "dropout", "rate",
    }  # fmt: skip
    assert (built.is_compiled, built.own_fit, built.one_hot, built.output) == (
        True,
        False,
        True,
        "probabilities",
    )
    assert built.metrics == ("val_loss", "val_accuracy")
    rate = next(parameter for parameter in built.space if parameter.name == "rate")
    assert isinstance(rate, FloatParameter)
    assert (rate.kind, rate.sampling, rate.min, rate.max) == ("float", "log", 1e-3, 1e-1)
    assert "/fit/optimizer" in built.unused


def test_a_whole_guide_is_executed_up_to_its_search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    built = dry_built(tmp_path / "run", own_code.WHOLE_GUIDE)
    assert len(built.space) == 7
    assert "tuner.search is not executed" in built.notes[0] and "(model.py, line" in built.notes[0]


def test_the_shape_of_the_data_is_found_in_the_data(tmp_path: Path, iris: DatasetFile) -> None:
    code = own_code.code_in(tmp_path / "code", own_code.SEARCH_OF_LAYERS)
    task = DryBuildTask(
        folder=str(tmp_path),
        code=code,
        model={"kind": "code", "digest": code.digest, "entry": "build_model"},
        shape=None,
        data={"dataset": "iris", "features": ["petal_length_cm", "petal_width_cm"]},
        texts="words",
        dataset=iris,
    )
    assert dry_build.run(task, ArtifactReport(tmp_path))["built"]["input_shape"] == [2]


def test_conditional_scopes_become_conditions(tmp_path: Path) -> None:
    built = dry_built(tmp_path, own_code.CONDITIONAL)
    when = {p.name: [(condition.name, condition.in_) for condition in p.conditions()] for p in built.space}
    assert when == {
        "family": [],
        "flat_units": [("family", ("flat",))],
        "deep_0": [("family", ("deep",))],
        "deep_1": [("family", ("deep",))],
    }
    assert built.output == "logits"


def test_hyperparameters_of_an_own_fit_are_found(tmp_path: Path) -> None:
    built = dry_built(tmp_path, own_code.TUNED_FIT, "TunedFit", args={"classes": 3})
    assert names(built) == ["units", "batch_size", "shuffle"]
    assert built.own_fit and "val_accuracy" in built.metrics
    assert "/fit/batch_size" in built.unused


def test_objects_of_the_code_and_its_metric_are_found(tmp_path: Path) -> None:
    built = dry_built(tmp_path, own_code.OWN_OBJECTS)
    assert {"Scaled", "Half", "MacroRecall"} <= set(built.custom_objects)
    assert built.metrics == ("val_loss", "val_macro_recall")


@pytest.mark.parametrize("wrong", own_code.BROKEN)
def test_each_failure_names_its_cause(tmp_path: Path, wrong: str) -> None:
    text, code, message = own_code.BROKEN[wrong]
    with pytest.raises(CodeFailure) as failure:
        dry_built(tmp_path, text)
    assert (failure.value.code, message in str(failure.value)) == (code, True), str(failure.value)
    # Nothing of the worker's own files.
    assert "workers/engine" not in failure.value.trace


def test_a_traceback_has_the_lines_of_the_code(tmp_path: Path) -> None:
    with pytest.raises(CodeFailure) as failure:
        dry_built(tmp_path, own_code.BROKEN["build"][0])
    assert 'File "model.py", line 7, in build_model' in failure.value.trace


def test_a_fit_that_returns_nothing_is_refused(tmp_path: Path) -> None:
    text = own_code.TUNED_FIT.replace("return model.fit", "model.fit")
    with pytest.raises(CodeFailure, match="fit returned nothing"):
        dry_built(tmp_path, text, "TunedFit")


ENTRIES = """
import functools

SIZE = 4

def preprocess(x):
    return x / 2

def make(hp, size):
    model = keras.Sequential([layers.Dense(hp.Int("units", size, 8)), layers.Dense(3, activation="softmax")])
    model.compile("adam", "sparse_categorical_crossentropy")
    return model

partial = functools.partial(make, size=SIZE)
short = lambda hp: make(hp, SIZE)

def outer(size):
    def inner(params):
        return make(params, size)
    return inner

made = outer(4)

class Maker:
    def __init__(self, size=4):
        self.size = size

    def model(self, hp):
        return make(hp, self.size)

    @staticmethod
    def plain(hp):
        return make(hp, 4)

class Net(keras_tuner.HyperModel):
    def build(self, hp):
        return make(hp, 4)

instance = Net()
"""


@pytest.mark.parametrize("entry", ["partial", "short", "made", "Maker.model", "Maker.plain", "instance"])
def test_functions_with_any_name_and_methods_build_models(tmp_path: Path, entry: str) -> None:
    built = dry_built(tmp_path, own_code.IMPORTS + ENTRIES, entry)
    assert names(built) == ["units"]


def test_a_method_gets_the_arguments_of_its_class(tmp_path: Path) -> None:
    built = dry_built(tmp_path, own_code.IMPORTS + ENTRIES, "Maker.model", args={"size": 6})
    assert built.space[0].grid()[0] == 6


def test_a_definition_after_the_line_that_failed_is_not_replaced_by_an_earlier_one(tmp_path: Path) -> None:
    earlier = "\ndef make(hp):\n    return keras.Sequential([layers.Dense(3)])\n"
    text = own_code.IMPORTS + earlier + "\nraise ValueError('no data')\n" + earlier
    with pytest.raises(CodeFailure, match="make is defined after that line; keep the definitions"):
        dry_built(tmp_path, text, "make")


COMPILED = '\n    model.compile("adam", "sparse_categorical_crossentropy")\n    return model\n'
DENSE = "    model = keras.Sequential([layers.Dense(3, activation='softmax')])" + COMPILED
FIT_OF_CLASS = """
class Net(keras_tuner.HyperModel):
    def build(self, hp):
        model = keras.Sequential([layers.Dense(3, activation="softmax")])
        model.compile("adam", "LOSS")
        return model

    def fit(self, hp, model, x, y, **kwargs):
        return model.fit(x, TARGETS, **kwargs)
"""
FIT_OF_IMAGES = """
import keras_tuner


class Net(keras_tuner.HyperModel):
    def build(self, hp):
        output = layers.Dense(3, activation="softmax")
        model = keras.Sequential([keras.Input((4, 4, 1)), layers.Flatten(), output])
        model.compile("adam", "sparse_categorical_crossentropy")
        return model

    def fit(self, hp, model, x, y, validation_data=None, **kwargs):
        return model.fit(STEP, y, **kwargs)
"""
TARGETS = "leave out to_categorical and argmax in fit"
IMAGES = DataShape(kind="image", task="multiclass", input_shape=(8, 8, 1), outputs=3)
SEQUENCES = DataShape(kind="sequence", task="multiclass", input_shape=(4, 3), outputs=3)
MESSAGES: dict[str, tuple[str, str, DataShape, str]] = {
    "tensorflow": ("from tensorflow import keras\ndef make(hp): ...\n", "make", IRIS, "use `import keras`"),
    "torch": ("import torch\ndef make(hp): ...\n", "make", IRIS, "torch is not installed: list its package"),
    "a default off its step": (
        "def make(hp):\n    hp.Int('depth', 1, 2)\n"
        f"    hp.Int('units', 32, 512, step=32, default=50)\n{DENSE}", "make", IRIS,
        "default 50 of 'units' is not on a step; the nearest value is 64",
    ),
    "a choice with null": (
        f"def make(hp):\n    hp.Choice('size', [None, 16])\n{DENSE}", "make", IRIS,
        "{'none': None, '16': 16}",
    ),
    "a choice of numbers of two kinds": (
        f"def make(hp):\n    hp.Choice('rate', [0, 0.1])\n{DENSE}", "make", IRIS, "0.0 instead of 0",
    ),
    "a choice of keys": (
        f"def make(hp):\n    hp.Choice('kind', {{'a': 1}}.keys())\n{DENSE}", "make", IRIS, "list(options)",
    ),
    "a choice of an array": (
        f"def make(hp):\n    hp.Choice('size', np.arange(3))\n{DENSE}", "make", IRIS, "values.tolist()",
    ),
    "counts of a column": (
        FIT_OF_CLASS.replace("Dense(3, activation=\"softmax\")", "Dense(1, activation=\"sigmoid\")")
        .replace("LOSS", "binary_crossentropy").replace("TARGETS", "np.bincount(y)"),
        "Net", DataShape(kind="vector", task="binary", input_shape=(4,), outputs=1),
        "np.ravel(y).astype(int)",
    ),
    "a choice of lists": (
        f"def make(hp):\n    hp.Choice('size', [[1], [2, 3]])\n{DENSE}", "make", IRIS, "look its value up",
    ),
    "a name with a space": (
        f"def make(hp):\n    hp.Int('num layers', 1, 3)\n{DENSE}", "make", IRIS, "for example 'num_layers'",
    ),
    "one-hot targets of a sparse loss": (
        FIT_OF_CLASS.replace("LOSS", "sparse_categorical_crossentropy").replace(
            "TARGETS", "keras.utils.to_categorical(y, 3)"
        ), "Net", IRIS, TARGETS,
    ),
    "one-hot targets twice": (
        FIT_OF_CLASS.replace("LOSS", "categorical_crossentropy").replace(
            "TARGETS", "keras.utils.to_categorical(y)"
        ), "Net", IRIS, TARGETS,
    ),
    "class numbers of class numbers": (
        FIT_OF_CLASS.replace("LOSS", "sparse_categorical_crossentropy").replace(
            "TARGETS", "np.argmax(y, axis=1)"
        ), "Net", IRIS, TARGETS,
    ),
    "a crop in fit": (
        FIT_OF_IMAGES.replace("STEP", "x[:, :4, :4]"), "Net", IMAGES, "or by a function preprocess(x)",
    ),
    "a resizing in fit": (
        FIT_OF_IMAGES.replace("STEP", "layers.Resizing(4, 4)(x)"), "Net", IMAGES, "by a function preprocess",
    ),
    "a size of its own": (
        "def make(hp):\n    inputs = keras.Input((hp.Int('size', 4, 8),) * 2 + (1,))\n"
        "    model = keras.Model(inputs, layers.Dense(3, activation='softmax')(layers.Flatten()(inputs)))"
        + COMPILED, "make", IMAGES, "or by a function preprocess(x)",
    ),
    "a stateful layer": (
        "def make(hp):\n    model = keras.Sequential([layers.LSTM(4, stateful=True), layers.Dense(3)])"
        + COMPILED, "make", SEQUENCES, "so use stateful=False",
    ),
    "a metric that returns its variable": (
        "class Sum(keras.metrics.Metric):\n"
        "    def __init__(self, **kwargs):\n        super().__init__(**kwargs)\n"
        "        self.total = self.add_variable(shape=(), name='total', initializer='zeros')\n"
        "    def update_state(self, y, p, sample_weight=None):\n        self.total.assign_add(1.0)\n"
        "    def result(self):\n        return self.total\n\n"
        "def make(hp):\n    model = keras.Sequential([layers.Dense(3, activation='softmax')])\n"
        "    model.compile('adam', 'sparse_categorical_crossentropy', metrics=[Sum()])\n    return model\n",
        "make", IRIS, "keras.ops.convert_to_tensor(self.total)",
    ),
    "random numbers without a seed": (
        "class Noise(layers.Layer):\n    def call(self, x):\n"
        "        return x + keras.random.normal(keras.ops.shape(x))\n\n"
        "def make(hp):\n    model = keras.Sequential([Noise(), layers.Dense(3, activation='softmax')])"
        + COMPILED, "make", IRIS, "pass seed=self.seeds",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("text", "entry", "shape", "remedy"), MESSAGES.values(), ids=MESSAGES)
def test_a_message_names_the_remedy(
    tmp_path: Path, text: str, entry: str, shape: DataShape, remedy: str
) -> None:
    imports = "" if text.startswith(("from tensorflow", "import torch")) else own_code.IMPORTS
    with pytest.raises(CodeFailure) as failure:
        dry_built(tmp_path, imports + text, entry, shape)
    assert remedy in str(failure.value), str(failure.value)


def test_a_model_with_several_outputs_is_told_how_to_have_one(tmp_path: Path) -> None:
    text = own_code.IMPORTS + (
        "def build_model(hp):\n    x = keras.Input((4,))\n"
        "    return keras.Model(x, [layers.Dense(3)(x), layers.Dense(1)(x)])\n"
    )
    with pytest.raises(CodeFailure, match=r"2 outputs, but there is one target: .*model\.outputs\[0\]"):
        dry_built(tmp_path, text)
