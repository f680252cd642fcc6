"""A search as a KerasTuner user writes it: `python keras_tuner_search.py rows.npz space.json seed folder`."""

import json
import os
import sys
from pathlib import Path

os.environ["KERAS_BACKEND"] = "jax"

import keras
import keras_tuner
import numpy as np

ROWS, SEARCH, SEED, FOLDER = sys.argv[1:]
rows = np.load(ROWS)
search = json.loads(Path(SEARCH).read_text())
x, y, x_val, y_val = (rows[name] for name in ("x", "y", "x_val", "y_val"))
normalize = keras.layers.Normalization(axis=-1)
normalize.adapt(x)
binary = len(np.unique(y)) == 2


class CountEpochs(keras.callbacks.Callback):
    """Counts what was trained over all copies that the tuner makes."""

    trainings = epochs = 0

    def on_train_begin(self, logs=None):
        CountEpochs.trainings += 1

    def on_epoch_end(self, epoch, logs=None):
        CountEpochs.epochs += 1


def draw(hp, name):
    """Return the value of a hyperparameter, or what the model has where it is not searched."""
    for entry in search["space"]:
        if entry["name"] == name:
            if entry["kind"] == "int":
                return hp.Int(name, entry["min"], entry["max"], step=entry.get("step"))
            if entry["kind"] == "float":
                sampling = entry.get("sampling", "linear")
                step = entry.get("step")
                return hp.Float(name, entry["min"], entry["max"], step=step, sampling=sampling)
            return hp.Choice(name, entry["values"])
    return search["fixed"].get(name)


def build(hp):
    inputs = keras.Input(x.shape[1:])
    hidden = normalize(inputs)
    if search["template"] == "cnn":
        for _ in range(draw(hp, "layers")):
            hidden = keras.layers.Conv2D(draw(hp, "filters"), 3, padding="same", activation="relu")(hidden)
            if min(hidden.shape[1:3]) >= 2:
                hidden = keras.layers.MaxPooling2D(2)(hidden)
        hidden = keras.layers.Flatten()(hidden)
        hidden = keras.layers.Dense(draw(hp, "units"), activation="relu")(hidden)
    else:
        hidden = keras.layers.Flatten()(hidden)
        for _ in range(draw(hp, "layers")):
            hidden = keras.layers.Dense(draw(hp, "units"), activation="relu")(hidden)
            if rate := draw(hp, "dropout"):
                hidden = keras.layers.Dropout(rate)(hidden)
    outputs = keras.layers.Dense(1, "sigmoid") if binary else keras.layers.Dense(10, "softmax")
    model = keras.Model(inputs, outputs(hidden))
    optimizer = keras.optimizers.get(draw(hp, "optimizer"))
    optimizer.learning_rate = draw(hp, "learning_rate")
    loss = "binary_crossentropy" if binary else "sparse_categorical_crossentropy"
    model.compile(optimizer, loss, metrics=["accuracy"])
    return model


tuner = keras_tuner.BayesianOptimization(
    build,
    objective="val_accuracy",
    max_trials=search["max_trials"],
    executions_per_trial=search["executions"],
    seed=int(SEED) + 1,
    directory=FOLDER,
    project_name="search",
)
tuner.search(
    x,
    y,
    validation_data=(x_val, y_val),
    epochs=search["epochs"],
    batch_size=search["batch_size"],
    callbacks=[keras.callbacks.EarlyStopping(patience=search["patience"]), CountEpochs()],
    verbose=0,
)
best = tuner.oracle.get_best_trials(1)[0]
print(
    json.dumps(
        {
            "score": best.score,
            "trainings": CountEpochs.trainings,
            "epochs": CountEpochs.epochs,
            "distinct": len(
                {json.dumps(t.hyperparameters.values, sort_keys=True) for t in tuner.oracle.trials.values()}
            ),
        }
    )
)
