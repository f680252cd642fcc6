"""Own code for several devices: compiled, subclassed, with its own fit or steps, with masks."""

from tests import own_models
from tests.own_code import CUSTOM_LOOP, IMPORTS

COMPILED = (
    IMPORTS
    + """

def build_model(hp):
    inputs = keras.Input((4,))
    x = layers.BatchNormalization()(inputs)
    x = layers.Dropout(0.2)(layers.Dense(16, activation="relu")(x))
    outputs = layers.Dense(3, activation="softmax")(x)
    model = keras.Model(inputs, outputs)
    model.compile(
        optimizer=keras.optimizers.SGD(0.05, momentum=0.9), loss="categorical_crossentropy",
        metrics=["accuracy", keras.metrics.AUC(name="auc"), keras.metrics.F1Score(average="macro", name="f1"),
                 keras.metrics.Precision(name="precision"), keras.metrics.Recall(name="recall")],
        weighted_metrics=[keras.metrics.TopKCategoricalAccuracy(2, name="top_2")],
    )
    return model
"""
)
MASKED = (
    IMPORTS
    + """

def build_model(hp):
    model = keras.Sequential([
        keras.Input((5, 2)), layers.Masking(mask_value=0.0), layers.LSTM(16, dropout=0.1), layers.Dense(1)
    ])
    model.compile(
        optimizer=keras.optimizers.SGD(0.1), loss=keras.losses.BinaryCrossentropy(from_logits=True),
        metrics=[keras.metrics.BinaryAccuracy(threshold=0.0, name="accuracy")],
    )
    return model
"""
)
OWN_FIT = (
    IMPORTS
    + """

class Own(keras_tuner.HyperModel):
    def build(self, hp):
        model = keras.Sequential([keras.Input((4,)), layers.Dense(16, activation="relu"), layers.Dropout(0.1),
                                  layers.BatchNormalization(), layers.Dense(3, activation="softmax")])
        model.compile(optimizer=keras.optimizers.SGD(0.05), loss="sparse_categorical_crossentropy",
                      metrics=["accuracy"])
        return model

    def fit(self, hp, model, *args, **kwargs):
        return model.fit(*args, **kwargs)
"""
)
FORGETFUL = (
    IMPORTS
    + """

def build_model(hp):
    keras.backend.clear_session()
    model = keras.Sequential([keras.Input((4,)), layers.Dense(16), layers.Dense(3, activation="softmax")])
    model.compile(optimizer="sgd", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    return model
"""
)
FORGETFUL_BUILD = (
    IMPORTS
    + """

class Own(keras_tuner.HyperModel):
    def build(self, hp):
        keras.backend.clear_session()
        model = keras.Sequential([keras.Input((4,)), layers.Dense(16), layers.Dense(3, activation="softmax")])
        model.compile(optimizer="sgd", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
        return model
"""
)
FORGETFUL_SUBCLASS = (
    IMPORTS
    + """

class Net(keras.Model):
    def __init__(self):
        super().__init__()
        self.hidden, self.classes = layers.Dense(16, name="dense"), layers.Dense(3, activation="softmax")

    def build(self, input_shape):
        keras.backend.clear_session()
        self.hidden.build(input_shape)
        self.classes.build((None, 16))
        self.built = True

    def call(self, x):
        return self.classes(self.hidden(x))


def build_model(hp):
    model = Net()
    model.compile(optimizer="sgd", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    return model
"""
)
FORGETFUL_HALFWAY = FORGETFUL_SUBCLASS.replace(
    """        keras.backend.clear_session()
        self.hidden.build(input_shape)
""",
    """        self.hidden.build(input_shape)
        keras.backend.clear_session()
""",
)
FORGETFUL_STEPS = FORGETFUL_SUBCLASS.replace(
    "    def call(self, x):",
    """    def train_step(self, state, data):
        return super().train_step(state, data)

    def call(self, x):""",
)
FORGETFUL_FIT = (
    IMPORTS
    + """

class Own(keras_tuner.HyperModel):
    def build(self, hp):
        model = keras.Sequential([keras.Input((4,)), layers.Dense(16), layers.Dense(3, activation="softmax")])
        model.compile(optimizer="sgd", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
        return model

    def fit(self, hp, model, *args, **kwargs):
        keras.backend.clear_session()
        return self.build(hp).fit(*args, **kwargs)
"""
)

FIRST = {"match": "(.*/)?dense/kernel", "axes": [None, "model"]}
"""The first dense layer, however its model is named."""
LAYOUTS = {
    "masked": {"match": ".*/lstm_cell/kernel", "axes": [None, "model"]},
    "own steps": {"match": ".*/kernel", "axes": ["model", None]},
}
"""The layout rule of a case; of others `FIRST`."""
CODE: dict[str, tuple[str, str, str]] = {
    "compiled": (COMPILED, "build_model", "val_loss"),
    "masked": (MASKED, "build_model", "val_loss"),
    "subclassed": (own_models.PLAIN["call with training"].text, "build_model", "val_loss"),
    "not compiled": (own_models.PLAIN["not compiled"].text, "build_model", "val_loss"),
    "own steps": (own_models.ONE_CALL["own train_step"].text, "build_model", "val_accuracy"),
    "own fit": (OWN_FIT, "Own", "val_loss"),
    "own loop": (CUSTOM_LOOP, "OwnLoop", "val_loss"),
}
"""The text, the entry and the objective of each case."""
REFUSED = {
    "forgetful": (FORGETFUL, "build_model"),
    "forgetful build": (FORGETFUL_BUILD, "Own"),
    "forgetful subclass": (FORGETFUL_SUBCLASS, "build_model"),
    "forgetful halfway": (FORGETFUL_HALFWAY, "build_model"),
    "forgetful steps": (FORGETFUL_STEPS, "build_model"),
    "forgetful fit": (FORGETFUL_FIT, "Own"),
}
"""Code that clears the session: in a function, in the `build` of a class or of a model, or in a `fit`."""
