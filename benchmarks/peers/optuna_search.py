"""A search as an Optuna user writes it: `python optuna_search.py rows.npz space.json seed folder`."""

import json
import os
import sys
from pathlib import Path

os.environ["KERAS_BACKEND"] = "jax"

import keras
import numpy as np
import optuna

ROWS, SEARCH, SEED, _ = sys.argv[1:]
rows = np.load(ROWS)
search = json.loads(Path(SEARCH).read_text())
x, y, x_val, y_val = (rows[name] for name in ("x", "y", "x_val", "y_val"))
normalize = keras.layers.Normalization(axis=-1)
normalize.adapt(x)
binary = len(np.unique(y)) == 2
trained = {"trainings": 0, "epochs": 0}


def draw(trial, name):
    """Return the value of a hyperparameter, or what the model has where it is not searched."""
    for entry in search["space"]:
        if entry["name"] == name:
            if entry["kind"] == "int":
                return trial.suggest_int(name, entry["min"], entry["max"], step=entry.get("step") or 1)
            if entry["kind"] == "float":
                log = entry.get("sampling") == "log"
                return trial.suggest_float(name, entry["min"], entry["max"], step=entry.get("step"), log=log)
            return trial.suggest_categorical(name, entry["values"])
    return search["fixed"].get(name)


def build(values):
    inputs = keras.Input(x.shape[1:])
    hidden = normalize(inputs)
    if search["template"] == "cnn":
        for _ in range(values["layers"]):
            hidden = keras.layers.Conv2D(values["filters"], 3, padding="same", activation="relu")(hidden)
            if min(hidden.shape[1:3]) >= 2:
                hidden = keras.layers.MaxPooling2D(2)(hidden)
        hidden = keras.layers.Flatten()(hidden)
        hidden = keras.layers.Dense(values["units"], activation="relu")(hidden)
    else:
        hidden = keras.layers.Flatten()(hidden)
        for _ in range(values["layers"]):
            hidden = keras.layers.Dense(values["units"], activation="relu")(hidden)
            if values["dropout"]:
                hidden = keras.layers.Dropout(values["dropout"])(hidden)
    outputs = keras.layers.Dense(1, "sigmoid") if binary else keras.layers.Dense(10, "softmax")
    model = keras.Model(inputs, outputs(hidden))
    optimizer = keras.optimizers.get(values["optimizer"])
    optimizer.learning_rate = values["learning_rate"]
    loss = "binary_crossentropy" if binary else "sparse_categorical_crossentropy"
    model.compile(optimizer, loss, metrics=["accuracy"])
    return model


def objective(trial):
    names = ("units", "layers", "filters", "dropout", "optimizer", "learning_rate")
    values = {name: draw(trial, name) for name in names}
    scores = []
    for _ in range(search["executions"]):
        history = build(values).fit(
            x,
            y,
            validation_data=(x_val, y_val),
            epochs=search["epochs"],
            batch_size=search["batch_size"],
            callbacks=[keras.callbacks.EarlyStopping(patience=search["patience"])],
            verbose=0,
        )
        trained["trainings"] += 1
        trained["epochs"] += len(history.epoch)
        scores.append(max(history.history["val_accuracy"]))
    return float(np.mean(scores))


optuna.logging.set_verbosity(optuna.logging.WARNING)
study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=int(SEED)))
study.optimize(objective, n_trials=search["max_trials"])
distinct = len({json.dumps(trial.params, sort_keys=True) for trial in study.trials})
print(json.dumps({"score": study.best_value, "distinct": distinct, **trained}))
