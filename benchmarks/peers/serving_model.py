"""Loads the model of `serving_predict` as each of the peer servers uses it: one compiled function."""

import os
from collections.abc import Callable
from typing import Any

os.environ["KERAS_BACKEND"] = "jax"

import jax
import keras
import numpy as np

Predict = Callable[[Any], np.ndarray]


def compiled(path: str) -> Predict:
    """Return the model as a function of rows, compiled for the numbers of rows that the benchmark sends."""
    model = keras.saving.load_model(path, compile=False)
    weights = ([v.value for v in model.trainable_variables], [v.value for v in model.non_trainable_variables])
    function = jax.jit(lambda weights, x: model.stateless_call(*weights, x, training=False)[0])
    for rows in (1, 32):
        function(weights, np.zeros((rows, 784), np.float32)).block_until_ready()
    return lambda x: np.asarray(function(weights, x))
