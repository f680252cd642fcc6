"""Trains the networks of a search with Keras' `fit`; every peer uses the same ones."""

import functools
from collections.abc import Callable
from typing import Any

import keras
import numpy as np

from benchmarks.peers.given import Arguments, Values


class Task:
    """One search: its rows, its space and its models."""

    def __init__(self, arguments: Arguments) -> None:
        with np.load(arguments.rows) as arrays:
            self.x, self.y, self.x_val, self.y_val = (arrays[name] for name in ("x", "y", "x_val", "y_val"))
        self.search = arguments.plan()
        self._binary = len(np.unique(self.y)) == 2
        self._normalize = keras.layers.Normalization(axis=-1)
        self._normalize.adapt(self.x)

    def values(self, draw: Callable[[dict[str, Any]], Any]) -> Values:
        """Return the hyperparameters of a model: drawn from the space, or fixed."""
        return self.search["fixed"] | {entry["name"]: draw(entry) for entry in self.search["space"]}

    def build(self, values: Values) -> Any:
        """Return a compiled model."""
        inputs = keras.Input(self.x.shape[1:])
        hidden = self._normalize(inputs)
        body = _cnn if self.search["template"] == "cnn" else _mlp
        outputs = keras.layers.Dense(1, "sigmoid") if self._binary else keras.layers.Dense(10, "softmax")
        model = keras.Model(inputs, outputs(body(hidden, values)))
        optimizer = keras.optimizers.get(values["optimizer"])
        optimizer.learning_rate = values["learning_rate"]
        loss = "binary_crossentropy" if self._binary else "sparse_categorical_crossentropy"
        model.compile(optimizer, loss, metrics=["accuracy"])
        return model

    def fitting(self) -> dict[str, Any]:
        """Return new arguments of `fit` for one training, since the callback has state."""
        return {
            "x": self.x,
            "y": self.y,
            "validation_data": (self.x_val, self.y_val),
            "epochs": self.search["epochs"],
            "batch_size": self.search["batch_size"],
            "callbacks": [keras.callbacks.EarlyStopping(patience=self.search["patience"])],
            "verbose": 0,
        }

    def trial(self, values: Values) -> dict[str, Any]:
        """Train all executions of a trial; return their mean best score and the number of epochs."""
        histories = [self.build(values).fit(**self.fitting()) for _ in range(self.search["executions"])]
        return {
            "score": float(np.mean([max(history.history["val_accuracy"]) for history in histories])),
            "trainings": len(histories),
            "epochs": sum(len(history.epoch) for history in histories),
        }


@functools.cache
def task_of(arguments: Arguments) -> Task:
    """Return the task, created once per process."""
    return Task(arguments)


def _cnn(hidden: Any, values: Values) -> Any:
    for _ in range(values["layers"]):
        hidden = keras.layers.Conv2D(values["filters"], 3, padding="same", activation="relu")(hidden)
        if min(hidden.shape[1:3]) >= 2:
            hidden = keras.layers.MaxPooling2D(2)(hidden)
    hidden = keras.layers.Flatten()(hidden)
    return keras.layers.Dense(values["units"], activation="relu")(hidden)


def _mlp(hidden: Any, values: Values) -> Any:
    hidden = keras.layers.Flatten()(hidden)
    for _ in range(values["layers"]):
        hidden = keras.layers.Dense(values["units"], activation="relu")(hidden)
        if values["dropout"]:
            hidden = keras.layers.Dropout(values["dropout"])(hidden)
    return hidden
