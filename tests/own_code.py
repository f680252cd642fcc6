"""Code as a user would paste it: models that follow the guides of KerasTuner, and models with errors."""

import hashlib
from pathlib import Path

from jobs.messages.task import OwnCode, OwnCodeFile

IMPORTS = "import keras\nimport keras_tuner\nimport numpy as np\nfrom keras import layers\n\n"

SEARCH_OF_LAYERS = (
    IMPORTS
    + '''
def build_model(hp):
    """Flat rows, a searched number of hidden layers, one-hot targets."""
    model = keras.Sequential()
    model.add(layers.Flatten())
    for i in range(hp.Int("hidden", 1, 3)):
        units = hp.Int(f"width_{i}", min_value=8, max_value=32, step=8)
        model.add(layers.Dense(units, activation=hp.Choice("activation", ["relu", "tanh"])))
    if hp.Boolean("dropout"):
        model.add(layers.Dropout(rate=0.25))
    model.add(layers.Dense(3, activation="softmax"))
    rate = hp.Float("rate", min_value=1e-3, max_value=1e-1, sampling="log")
    model.compile(
        optimizer=keras.optimizers.Adam(learning_rate=rate),
        loss="categorical_crossentropy",
        metrics=["accuracy"],
    )
    return model
'''
)

CONDITIONAL = (
    IMPORTS
    + '''
def build_model(hp):
    """Two families of models, each with hyperparameters of its own."""
    inputs = keras.Input((4,))
    family = hp.Choice("family", ["flat", "deep"])
    if family == "flat":
        with hp.conditional_scope("family", ["flat"]):
            x = layers.Dense(hp.Int("flat_units", 4, 16, step=4), activation="relu")(inputs)
    else:
        with hp.conditional_scope("family", ["deep"]):
            x = inputs
            for i in range(2):
                x = layers.Dense(hp.Choice(f"deep_{i}", [8, 16]), activation="relu")(x)
    outputs = layers.Dense(3)(x)
    model = keras.Model(inputs, outputs)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(0.03), loss, metrics=["accuracy"])
    return model
'''
)

TUNED_FIT = (
    IMPORTS
    + '''
class TunedFit(keras_tuner.HyperModel):
    """The batch size and the order of rows are hyperparameters of `fit`."""

    def __init__(self, classes=3, **kwargs):
        super().__init__(**kwargs)
        self.classes = classes

    def build(self, hp):
        model = keras.Sequential(
            [
                layers.Dense(hp.Int("units", 8, 32, step=8), activation="relu"),
                layers.Dense(self.classes, activation="softmax"),
            ]
        )
        model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
        return model

    def fit(self, hp, model, *args, **kwargs):
        return model.fit(
            *args, batch_size=hp.Choice("batch_size", [16, 32]), shuffle=hp.Boolean("shuffle"), **kwargs
        )
'''
)

RETURNED_OBJECTIVE = (
    IMPORTS
    + '''
class Regression(keras_tuner.HyperModel):
    """Returns its own objective: the mean absolute error of the validation rows."""

    def build(self, hp):
        model = keras.Sequential([layers.Dense(hp.Int("units", 4, 16), activation="relu"), layers.Dense(1)])
        model.compile(optimizer=keras.optimizers.Adam(0.05), loss="mean_squared_error")
        return model

    def fit(self, hp, model, x, y, validation_data, **kwargs):
        model.fit(x, y, **kwargs)
        x_val, y_val = validation_data
        return float(np.mean(np.abs(model.predict(x_val) - y_val)))
'''
)

CUSTOM_LOOP = (
    IMPORTS
    + '''
class OwnLoop(keras_tuner.HyperModel):
    """A training loop of its own, which reports to the callbacks and returns the best value."""

    def build(self, hp):
        inputs = keras.Input((4,))
        x = layers.Dense(hp.Int("units", 8, 24, step=8), activation="relu")(inputs)
        return keras.Model(inputs, layers.Dense(3)(x))

    def fit(self, hp, model, x, y, validation_data, callbacks=None, **kwargs):
        size = hp.Int("batch", 16, 64, step=16, default=32)
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        rate = hp.Float("rate", 1e-3, 1e-1, sampling="log")
        model.compile(optimizer=keras.optimizers.Adam(rate), loss=loss)
        for callback in callbacks:
            callback.set_model(model)
        best = float("inf")
        for epoch in range(3):
            for start in range(0, len(x), size):
                model.train_on_batch(x[start : start + size], y[start : start + size])
            x_val, y_val = validation_data
            value = float(loss(y_val, model.predict_on_batch(x_val)))
            for callback in callbacks:
                callback.on_epoch_end(epoch, logs={"my_metric": value})
            best = min(best, value)
        return best
'''
)

LOADS_IRIS = """
from sklearn.datasets import load_iris

def load_data(split):
    found = load_iris()
    part = {"train": 0, "validation": 1, "test": 2}[split]
    rows = [i for i in range(150) if max(i % 5 - 2, 0) == part]
    return found.data[rows], found.target_names[found.target[rows]]
"""

OWN_OBJECTS = (
    IMPORTS
    + '''
@keras.saving.register_keras_serializable(package="team")
class Scaled(layers.Layer):
    """Multiplies by a weight."""

    def build(self, shape):
        self.factor = self.add_weight(shape=(shape[-1],), initializer="ones", name="factor")

    def call(self, inputs):
        return inputs * self.factor


class Half(layers.Layer):
    """Divides by two; it is not registered."""

    def call(self, inputs):
        return inputs / 2


class MacroRecall(keras.metrics.Metric):
    """The mean over the classes of their recall."""

    def __init__(self, classes=3, name="macro_recall", **kwargs):
        super().__init__(name=name, **kwargs)
        self.classes = classes
        self.hits = self.add_variable((classes,), initializer="zeros", name="hits")
        self.rows = self.add_variable((classes,), initializer="zeros", name="rows")

    def update_state(self, y_true, y_pred, sample_weight=None):
        found = keras.ops.one_hot(keras.ops.argmax(y_pred, axis=-1), self.classes)
        true = keras.ops.one_hot(keras.ops.cast(keras.ops.reshape(y_true, (-1,)), "int32"), self.classes)
        if sample_weight is not None:
            true = true * keras.ops.reshape(keras.ops.cast(sample_weight, true.dtype), (-1, 1))
        self.hits.assign_add(keras.ops.sum(true * found, axis=0))
        self.rows.assign_add(keras.ops.sum(true, axis=0))

    def result(self):
        return keras.ops.mean(self.hits / keras.ops.maximum(self.rows, 1.0))


def preprocess(x):
    return (x - 3.0) / 2.0


def build_model(hp):
    inputs = keras.Input((4,))
    x = Half()(Scaled()(inputs))
    x = layers.Dense(hp.Int("units", 8, 24, step=8), activation="relu")(x)
    model = keras.Model(inputs, layers.Dense(3, activation="softmax")(x))
    model.compile(keras.optimizers.Adam(0.03), "sparse_categorical_crossentropy", metrics=[MacroRecall()])
    return model
'''
)

NOT_COMPILED = (
    IMPORTS
    + '''
def build_model(hp):
    """Not compiled: the experiment's optimizer and loss are used. Its outputs are logits."""
    units = hp.Int("units", 8, 24, step=8)
    return keras.Sequential([layers.Dense(units, activation="relu"), layers.Dense(3)])
'''
)

WHOLE_GUIDE = (
    SEARCH_OF_LAYERS
    + """

build_model(keras_tuner.HyperParameters())
tuner = keras_tuner.RandomSearch(build_model, objective="val_accuracy", max_trials=2, directory="tried")
tuner.search_space_summary()
tuner.search(np.zeros((8, 4)), np.zeros((8, 3)), epochs=1)
raise AssertionError("lines after a search are not executed")
"""
)

BROKEN = {
    "import": (
        "raise RuntimeError('not today')\n" + SEARCH_OF_LAYERS,
        "code_import",
        "RuntimeError: not today",
    ),
    "build": (
        IMPORTS + "def build_model(hp):\n    return keras.Sequential(hp.Int('a', 1, 2))\n",
        "code_build",
        "",
    ),
    "exit": (IMPORTS + "def build_model(hp):\n    raise SystemExit(0)\n", "code_build", "sys.exit(0)"),
    "nothing": (
        IMPORTS + "def build_model(hp):\n    keras.Sequential([layers.Dense(hp.Int('a', 1, 2))])\n",
        "code_build",
        "returned nothing",
    ),
    "no model": (
        IMPORTS + "def build_model(hp):\n    return hp.Int('a', 1, 2)\n",
        "code_build",
        "returned int",
    ),
    "outputs": (
        IMPORTS + "def build_model(hp):\n    return keras.Sequential([layers.Dense(hp.Int('a', 7, 8))])\n",
        "wrong_shape",
        "3 classes need 3",
    ),
    "inputs": (
        IMPORTS
        + "def build_model(hp):\n    hp.Int('a', 1, 2)\n"
        + "    return keras.Sequential([keras.Input((28, 28)), layers.Flatten(), layers.Dense(3)])\n",
        "wrong_shape",
        "rows of 4",
    ),
}
"""By the mistake: the code, the code of its error, and a part of its message."""


def code_in(folder: Path, text: str, name: str = "model.py") -> OwnCode:
    """Return a code version with one file."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / name
    file.write_text(text, encoding="utf-8")
    digest = hashlib.sha256(text.encode()).hexdigest()
    place = OwnCodeFile(path=name, place=str(file))
    return OwnCode(digest=digest, files=(place,), folder=str(folder), minimum="process", network=False)
