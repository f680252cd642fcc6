"""Models whose hyperparameters depend on one another, as in KerasTuner's guides and in reports about it."""

IMPORTS = "import keras\nimport keras_tuner\nfrom keras import layers\n"

DONE = """
    model.add(layers.Dense(3, activation="softmax"))
    model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    return model
"""

FAMILIES_WITHOUT_SCOPES = """
def build_model(hp):
    model = keras.Sequential()
    family = hp.Choice("family", ["mlp", "cnn"])
    if family == "mlp":
        for i in range(hp.Int("mlp_layers", 1, 3)):
            model.add(layers.Dense(hp.Int(f"mlp_units_{i}", 4, 16, step=4), activation="relu"))
    else:
        model.add(layers.Reshape((4, 1)))
        for i in range(hp.Int("cnn_layers", 1, 2)):
            model.add(layers.Conv1D(hp.Choice(f"filters_{i}", [2, 4, 8]), 1))
            if hp.Boolean(f"norm_{i}"):
                model.add(layers.BatchNormalization(momentum=hp.Float(f"momentum_{i}", 0.5, 0.9)))
        model.add(layers.Flatten())
"""

FAMILIES_WITH_SCOPES = """
def build_model(hp):
    model = keras.Sequential()
    family = hp.Choice("family", ["mlp", "cnn"])
    with hp.conditional_scope("family", ["mlp"]):
        if family == "mlp":
            for i in range(hp.Int("mlp_layers", 1, 3)):
                model.add(layers.Dense(hp.Int(f"mlp_units_{i}", 4, 16, step=4), activation="relu"))
    with hp.conditional_scope("family", ["cnn"]):
        if family == "cnn":
            model.add(layers.Reshape((4, 1)))
            pooling = hp.Choice("pooling", ["none", "max", "average"])
            with hp.conditional_scope("pooling", ["max", "average"]):
                if pooling != "none":
                    size = hp.Int("pool_size", 1, 2)
                    kind = layers.MaxPooling1D if pooling == "max" else layers.AveragePooling1D
                    model.add(kind(size))
            model.add(layers.Flatten())
"""

CHAIN_OF_OPTIMIZER = """
def build_model(hp):
    model = keras.Sequential([layers.Dense(4)])
    optimizer = hp.Choice("optimizer", ["sgd", "rmsprop", "adam"])
    if optimizer == "adam":
        if hp.Boolean("decay"):
            if hp.Float("decay_rate", 0.0, 1.0) > 0.75:
                hp.Int("decay_steps", 10, 1000, sampling="log")
    elif optimizer == "sgd" and hp.Boolean("nesterov"):
        hp.Float("momentum", 0.1, 0.9, step=0.1)
"""

TWO_CONDITIONS = """
LARGE = 100

def build_model(hp):
    first, second = hp.Boolean("first"), hp.Choice("second", ["a", "b", "c"])
    units = hp.Int("units", 4, 200)
    model = keras.Sequential([layers.Dense(units)])
    if first and second == "b":
        hp.Fixed("both", 1)
        if units > LARGE:
            hp.Boolean("all_three")
    if units in (37, 38):
        hp.Choice("at_one_place", [1, 2])
"""

NESTED_LOOPS = """
def block(hp, model, i):
    for j in range(hp.Int(f"depth_{i}", 1, 3)):
        model.add(layers.Dense(hp.Int(f"units_{i}_{j}", 4, 8, step=4)))
    if hp.Boolean(f"dropout_{i}"):
        model.add(layers.Dropout(hp.Float(f"rate_{i}", 0.1, 0.5)))

def build_model(hp):
    model = keras.Sequential()
    for i in range(hp.Int("blocks", 1, 3)):
        block(hp, model, i)
"""

NAMES_IN_SCOPES = """
def build_model(hp):
    model = keras.Sequential([layers.Dense(4)])
    with hp.name_scope("head"):
        if hp.Choice("kind", ["small", "large"]) == "large":
            with hp.name_scope("deep"):
                hp.Int("units", 8, 32, step=8)
    hp.Choice("child", [1, 2], parent_name="head/kind", parent_values=["large"])
"""

ONE_NAME_IN_TWO_SCOPES = """
def build_model(hp):
    model = keras.Sequential([layers.Dense(4)])
    family = hp.Choice("family", ["mlp", "cnn", "none"])
    for name in ("mlp", "cnn"):
        with hp.conditional_scope("family", [name]):
            if family == name:
                hp.Int("units", 4, 8)
"""

DECLARED_BEFORE = """
class Net(keras_tuner.HyperModel):
    def declare_hyperparameters(self, hp):
        hp.Int("units", 4, 8)

    def build(self, hp):
        model = keras.Sequential([layers.Dense(hp.get("units"))])
        if hp.get("units") == 7:
            hp.Boolean("seven")
        model.add(layers.Dense(3, activation="softmax"))
        model.compile(optimizer="adam", loss="sparse_categorical_crossentropy")
        return model
"""

OWN_FIT = """
class Net(keras_tuner.HyperModel):
    def build(self, hp):
        family = hp.Choice("family", ["a", "b"])
        model = keras.Sequential([layers.Dense(4), layers.Dense(3, activation="softmax")])
        model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
        return model

    def fit(self, hp, model, x, y, **kwargs):
        schedule = hp.Choice("schedule", ["none", "step", "cosine"])
        if schedule == "step":
            if hp.Boolean("warm"):
                hp.Int("warm_epochs", 1, 5)
        if hp.get("family") == "b":
            hp.Float("weight", 0.0, 1.0)
        return model.fit(x, y, batch_size=hp.Choice("batch_size", [16, 32, 64]), **kwargs)
"""

EXAMPLES = {
    "families without scopes": FAMILIES_WITHOUT_SCOPES + DONE,
    "families with scopes": FAMILIES_WITH_SCOPES + DONE,
    "a chain behind an optimizer": CHAIN_OF_OPTIMIZER + DONE,
    "two conditions at once": TWO_CONDITIONS + DONE,
    "nested loops": NESTED_LOOPS + DONE,
    "name scopes": NAMES_IN_SCOPES + DONE,
    "declared before": DECLARED_BEFORE,
    "an own fit": OWN_FIT,
}
"""For rows of four numbers and three classes: each is a function `build_model` or a class `Net`."""

WHOLE_GUIDE = '''
"""A guide with several definitions of one name, data that are loaded, and searches between them."""
from tensorflow import keras
from tensorflow.keras import layers


def build_model(hp):
    model = keras.Sequential([layers.Flatten(), layers.Dense(hp.Int("first", 4, 8))])
    model.compile("adam", "categorical_crossentropy", metrics=["accuracy"])
    return model


import keras_tuner

build_model(keras_tuner.HyperParameters())


def existing(units, rate):
    model = keras.Sequential([layers.Flatten(), layers.Dense(units), layers.Dense(3, activation="softmax")])
    model.compile(keras.optimizers.Adam(rate), "categorical_crossentropy", metrics=["accuracy"])
    return model


def build_model(hp):
    for i in range(hp.Int("layers", 1, 2)):
        hp.Int(f"units_{i}", 4, 8)
    return existing(hp.get("units_0"), hp.Float("rate", 1e-4, 1e-2, sampling="log"))


tuner = keras_tuner.RandomSearch(
    hypermodel=build_model,
    objective="val_accuracy",
    max_trials=3,
    executions_per_trial=2,
    overwrite=True,
)
tuner.search_space_summary()
(x, y), (x_test, y_test) = keras.datasets.mnist.load_data()
y = keras.utils.to_categorical(y, 10)
tuner.search(x, y, epochs=2, validation_data=(x_test, y_test))
models = tuner.get_best_models(num_models=2)
models[0].summary()


class Tuned(keras_tuner.HyperModel):
    def build(self, hp):
        return build_model(hp)

    def fit(self, hp, model, *args, **kwargs):
        return model.fit(*args, shuffle=hp.Boolean("shuffle"), **kwargs)


tuner = keras_tuner.RandomSearch(Tuned(), objective="val_accuracy", max_trials=4)
tuner.search(x, y, epochs=3)
'''
