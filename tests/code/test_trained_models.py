"""A pasted file without a function that builds models: the lines that build and train one become such."""

import json
from pathlib import Path

import pytest

from jobs.models import CodeVersion
from jobs.spec.experiment import ExperimentSpec
from tests.code.test_notebooks import definitions_of, found_in, stored
from tests.factories import make_dataset
from tests.markup import squeezed
from tests.people import People, browser_of

IMPORTS = "import keras\nimport numpy as np\nfrom keras import layers\n"
GUIDE = (
    IMPORTS
    + '''
"""A model that is built step by step."""


class Doubled(layers.Layer):
    def call(self, x):
        return 2 * x


WIDTH = 8
inputs = keras.Input((4,))
x = layers.Dense(WIDTH, activation="relu")(inputs)
x = Doubled()(x)
model = keras.Model(inputs, layers.Dense(1)(x))
model.summary()
model.compile(
    optimizer="adam",  # as in the guide
    loss="mse",
)

x = np.random.random((100, 4))
y = np.random.random((100, 1))
stop = keras.callbacks.EarlyStopping(monitor="val_loss", patience=3)
history = model.fit(x, y, batch_size=16, epochs=5, validation_split=0.25, callbacks=[stop], class_weight={})
print(history.history)
model.evaluate(x, y)
'''
)


def test_the_lines_that_build_a_trained_model_become_a_function(tmp_path: Path) -> None:
    text, found = definitions_of(tmp_path, GUIDE)
    assert text.endswith(
        '''
def build_model(hp):
    """Build the model that line 27 of the pasted file trains."""
    WIDTH = 8
    inputs = keras.Input((4,))
    x = layers.Dense(WIDTH, activation="relu")(inputs)
    x = Doubled()(x)
    model = keras.Model(inputs, layers.Dense(1)(x))
    model.compile(
        optimizer="adam",  # as in the guide
        loss="mse",
    )
    return model
'''
    )
    assert "np.random" not in text and "EarlyStopping" not in text
    assert [(entry.kind, entry.name, entry.note) for entry in found.entries] == [
        ("layer", "Doubled", ""),
        ("build_model", "build_model", ""),
    ]
    assert not found.runs and not found.notices


def test_the_page_says_what_becomes_of_them(tmp_path: Path) -> None:
    found = found_in(tmp_path, GUIDE)
    (notice,) = found.notices
    assert notice.line == 27
    assert "keep the definitions: the lines that build model" in notice.message
    assert "a function build_model(hp)" in notice.message


def test_the_call_of_fit_is_the_training_with_which_an_experiment_begins(tmp_path: Path) -> None:
    found = found_in(tmp_path, GUIDE)
    training = found.search_for("build_model")
    assert training is not None and found.search is None
    assert training.model_dump(exclude_defaults=True) == {
        "path": "model.py", "line": 27, "tuner": "", "entry": "build_model", "epochs": 5, "batch_size": 16,
        "validation_split": 0.25, "early_stopping": {"monitor": "val_loss", "patience": 3},
        "left_out": ["class_weight"],
    }  # fmt: skip


MODEL = "model = keras.Sequential([keras.Input((4,)), layers.Dense(8), layers.Dense(1)])\n"
FIT = "model.compile('adam', 'mse')\nmodel.fit(np.zeros((9, 4)), np.zeros(9))\n"
FREEZE = "def freeze(layer):\n    layer.trainable = False\n"


@pytest.mark.parametrize(
    ("between", "kept"),
    [
        ("model.layers[0].trainable = False\n", "model.layers[0].trainable = False"),
        ("for layer in model.layers[:1]:\n    layer.trainable = False\n", "for layer in model.layers[:1]:"),
        (f"{FREEZE}freeze(model.layers[0])\n", "freeze(model.layers[0])"),
        ("if True:\n    model.add(layers.Dense(2))\n", "if True:\n        model.add(layers.Dense(2))"),
        (
            "a, b = 'x', '''two\nlines'''\nmodel.add(layers.Dense(2, name=a + b[:3]))\n",
            "model.add(layers.Dense(",
        ),
    ],
)
def test_lines_that_change_the_model_are_part_of_the_function(
    tmp_path: Path, between: str, kept: str
) -> None:
    text, _ = definitions_of(tmp_path, IMPORTS + MODEL + between + FIT)
    assert kept in text.partition("def build_model(hp):")[2]
    compile(text, "model.py", "exec")


def test_a_second_training_of_the_same_model_is_not_part_of_it(tmp_path: Path) -> None:
    more = "model.layers[0].trainable = False\n" + FIT.replace("adam", "sgd")
    text, _ = definitions_of(tmp_path, IMPORTS + MODEL + FIT + more)
    assert "'adam'" in text and "'sgd'" not in text


def test_each_variable_that_is_trained_has_a_function(tmp_path: Path) -> None:
    other = MODEL.replace("model", "net").replace("8", "9") + FIT.replace("model", "net")
    _, found = definitions_of(tmp_path, IMPORTS + MODEL + FIT + other)
    assert [entry.name for entry in found.entries] == ["build_model", "build_net"]


def test_a_function_of_the_file_with_the_same_name_is_called(tmp_path: Path) -> None:
    begin = "def build_model():\n    return keras.Sequential([layers.Dense(1)])\nmodel = build_model()\n"
    text, found = definitions_of(tmp_path, IMPORTS + begin + FIT)
    assert "def build_trained_model(hp):" in text and "    model = build_model()" in text
    assert "build_trained_model" in [entry.name for entry in found.entries]


@pytest.mark.parametrize(
    ("text", "obstacle"),
    [
        (
            "x, y = keras.datasets.mnist.load_data()\nmodel = keras.Sequential([keras.Input(x.shape)])\n",
            "it needs x, which line 4 computes from data",
        ),
        (
            "scale = layers.Normalization()\nscale.adapt(np.ones(4))\nmodel = keras.Sequential([scale])\n",
            "it needs scale, which line 5 computes from data",
        ),
    ],
)
def test_a_model_that_depends_on_data_is_refused_with_its_line(
    tmp_path: Path, text: str, obstacle: str
) -> None:
    found = found_in(tmp_path, IMPORTS + text + FIT)
    (notice,) = found.notices
    assert f"no function can be made of the lines that build model: {obstacle}" in notice.message


def test_a_class_that_is_defined_again_after_the_training_is_named(tmp_path: Path) -> None:
    net = "class Net(keras.Model):\n    def call(self, x):\n        return {}\n"
    text = IMPORTS + net.format("x") + "model = Net()\n" + FIT + net.format("2 * x")
    (notice,) = found_in(tmp_path, text).notices
    assert "Net is defined again in line 10; paste the lines up to the training alone" in notice.message


@pytest.mark.parametrize(
    "text",
    [
        "from sklearn.svm import SVC\nmodel = SVC()\nmodel.fit([[1], [2]], [0, 1])\n",
        IMPORTS + "def build(hp):\n    return keras.Sequential()\n" + MODEL + FIT,
        IMPORTS + "if __name__ == '__main__':\n    main()\n" + MODEL + FIT,
    ],
    ids=["no model of Keras", "a function that takes hyperparameters", "a script"],
)
def test_other_files_get_no_function(tmp_path: Path, text: str) -> None:
    kept, _ = definitions_of(tmp_path, text)
    assert "(hp)" not in kept.replace("build(hp)", "")


def test_one_click_makes_the_function_and_the_training_is_proposed(people: People) -> None:
    make_dataset("flowers", project=people.project, by=people.member)
    browser = browser_of(people.trainer)
    sent = stored(browser, GUIDE)
    page = squeezed(browser.get(f"/code/{sent['digest']}?project=yard").content.decode())
    assert "become a function build_model(hp)" in page
    assert "<code>fit</code> of the model of <code>build_model</code>" in page and "class_weight" in page
    assert browser.post(f"/code/{sent['digest']}/definitions?project=yard").status_code == 303
    kept = CodeVersion.objects.order_by("-pk")[0]
    start = f"/p/yard/experiments/new?code={kept.digest}&entry=build_model&dataset=flowers"
    spec = json.loads(browser.get(start).context["entries"]["spec"])
    assert spec["model"] == {"kind": "code", "digest": kept.digest, "entry": "build_model"}
    assert "search" not in spec and "after" not in spec
    assert spec["fit"] == {
        "epochs": 5, "batch_size": 16,
        "early_stopping": {"monitor": "val_loss", "patience": 3, "min_delta": 0.0, "restore_best": False},
    }  # fmt: skip
    assert spec["data"]["split"]["validation"] == 0.25
    ExperimentSpec.model_validate(spec)
