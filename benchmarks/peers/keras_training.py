"""Trains one network as a user of Keras writes it: fit with validation, save, evaluate on the test rows.

Run `KERAS_BACKEND=jax python -m benchmarks.peers.keras_training rows.npz training.json model.keras`. The
first 60 % of the rows are for training, the next 20 % for validation, the rest for the test.
"""

import json
import sys
from pathlib import Path

import keras
import numpy as np

rows, plan, out = sys.argv[1:]
training = json.loads(Path(plan).read_text())
with np.load(rows) as arrays:
    x, y = arrays["x"].astype("float32"), arrays["y"]
first, second = int(0.6 * len(x)), int(0.8 * len(x))

normalize = keras.layers.Normalization(axis=-1)
normalize.adapt(x[:first])
inputs = keras.Input(x.shape[1:])
hidden = normalize(inputs)
if training["template"] == "cnn":
    for _ in range(training["layers"]):
        hidden = keras.layers.Conv2D(training["filters"], 3, padding="same", activation="relu")(hidden)
        hidden = keras.layers.MaxPooling2D(2)(hidden)
    hidden = keras.layers.Dense(64, activation="relu")(keras.layers.Flatten()(hidden))
else:
    for _ in range(training["layers"]):
        hidden = keras.layers.Dense(training["units"], activation="relu")(hidden)
model = keras.Model(inputs, keras.layers.Dense(int(y.max()) + 1, activation="softmax")(hidden))
model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(
    x[:first],
    y[:first],
    validation_data=(x[first:second], y[first:second]),
    epochs=training["epochs"],
    batch_size=training["batch_size"],
    verbose=0,
)
model.save(out)
print(model.evaluate(x[second:], y[second:], verbose=0))
