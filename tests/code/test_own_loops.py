"""A loop that trains by hand is named, and its file can be started as a script."""

from pathlib import Path

import pytest

from tests.code.test_notebooks import found_in, stored
from tests.people import People, browser_of

LOOP = """import jax
import keras

model = keras.Sequential([keras.layers.Dense(1)])
(x, y), _ = keras.datasets.mnist.load_data()


def compute_loss(variables, x, y):
    return ((model.stateless_call(variables, [], x)[0] - y) ** 2).mean()


grad_fn = jax.value_and_grad(compute_loss)


@jax.jit
def train_step(state, data):
    return grad_fn(state, *data)


for epoch in range(3):
    for batch in zip(x, y):
        loss, state = train_step(state, batch)
"""
FUNCTION = """import tensorflow as tf

def train(model, data, epochs):
    for epoch in range(epochs):
        if epoch:
            for x, y in data:
                with tf.GradientTape() as tape:
                    loss = model(x) - y
                optimizer.apply_gradients(zip(tape.gradient(loss, w), w))
"""
GAN = """import keras

for epoch in range(10):
    d_loss = discriminator.train_on_batch(x, y)
"""
TRAINER = """import tensorflow as tf

class Trainer:
    def train(self):
        while True:
            with tf.GradientTape() as tape: ...

if True:
    Trainer().train()
"""


@pytest.mark.parametrize(
    ("text", "line", "end"), [(LOOP, 20, 22), (GAN, 3, 4), (TRAINER, 5, 6)], ids=["jax", "gan", "a class"]
)
def test_a_file_that_trains_by_a_loop_of_its_own_is_a_script(
    tmp_path: Path, text: str, line: int, end: int
) -> None:
    found = found_in(tmp_path, text)
    assert [(entry.kind, entry.name, entry.note) for entry in found.entries] == [("script", "model.py", "")]
    (notice,) = found.notices
    assert notice.line == line
    assert notice.message.startswith(f"lines {line} to {end}: a training by hand, which no model's fit calls")
    assert "start the file as a script that calls trainyard_report.report" in notice.message
    assert "train_step" in notice.message


def test_a_function_with_such_a_loop_has_to_be_called_first(tmp_path: Path) -> None:
    found = found_in(tmp_path, FUNCTION)
    assert not found.entries
    assert [notice.line for notice in found.notices if "call its function" in notice.message] == [4]


def test_lines_of_a_notebook_that_prevent_the_start_are_named(tmp_path: Path) -> None:
    (script,) = found_in(tmp_path, f"!pip install keras\n{LOOP}").entries
    assert script.note == "To start it, remove the lines that only a notebook understands: 1."


@pytest.mark.parametrize(
    "text",
    [
        f"{LOOP}\ndef build_model(hp): ...\n",
        f"{FUNCTION}\nmodel = keras.Sequential([])\nmodel.fit(x, y)\n".replace("tensorflow as tf", "keras"),
        "import keras\nclass Net(keras.Model):\n    def train_step(self, data):\n        for _ in range(2):\n"
        "            with tf.GradientTape(): ...\n",
        "import keras_tuner\nclass Net(keras_tuner.HyperModel):\n    def build(self, hp): ...\n"
        "    def fit(self, hp, model, x, y):\n        for _ in range(2):\n            jax.grad(f)(x)\n",
        "class Layer(keras.layers.Layer): ...\nfor layer in model.layers:\n    layer.trainable = False\n",
        f'{FUNCTION}\nif __name__ == "__main__":\n    train()\n',
    ],
    ids=["a builder", "a fit", "train_step of a model", "fit of a HyperModel", "another loop", "a script"],
)
def test_other_files_have_no_such_notice(tmp_path: Path, text: str) -> None:
    found = found_in(tmp_path, text)
    assert not [notice for notice in found.notices if "by hand" in notice.message]
    assert [entry.kind for entry in found.entries if entry.kind == "script"] == ["script"] * (
        "__name__" in text
    )


def test_one_click_begins_the_experiment_of_such_a_script(people: People) -> None:
    browser = browser_of(people.trainer)
    digest = stored(browser, LOOP)["digest"]
    page = browser.get(f"/code/{digest}?project=yard").content.decode()
    assert "a training by hand" in page
    address = f"/p/yard/code/{digest}/run?entry=model.py"
    assert address in page
    assert 'value="model.py"' in browser.get(address).content.decode()
