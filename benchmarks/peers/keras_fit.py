"""Runs Keras' `fit` on request, in its own process.

`python -m benchmarks.peers.keras_fit` prints its version of Keras, then answers each line of JSON with
another. `{"network", "rows", "fit", "steps"}` compiles a saved network once for each `steps_per_execution` in
`steps` and trains one epoch with each; `{"steps", "epochs"}` trains that many epochs and returns the CPU
seconds.
"""

import gc
import json
import os
import sys
import time
from typing import Any

os.environ.update(KERAS_BACKEND="jax", JAX_PLATFORMS="cpu")

import keras
import numpy as np


class Trainer:
    """A network with its rows, compiled with Keras' defaults."""

    def __init__(self, network: str, rows: str, fit: dict[str, Any], steps: list[int]) -> None:
        with np.load(rows) as arrays:
            self._x, self._y = arrays["x"], arrays["y"]
        self._batch_size = fit["batch_size"]
        self._models = {count: compiled(network, fit, count) for count in steps}
        for count in steps:
            self.train(count, 1)

    def train(self, steps: int, epochs: int) -> float:
        """Train `epochs` epochs; return the CPU seconds of all threads of this process."""
        model = self._models[steps]
        began = time.process_time()
        model.fit(self._x, self._y, batch_size=self._batch_size, epochs=epochs, shuffle=True, verbose=0)
        return time.process_time() - began


def compiled(network: str, fit: dict[str, Any], steps_per_execution: int) -> Any:
    model = keras.models.load_model(network, compile=False)
    optimizer = keras.optimizers.get(fit["optimizer"])
    optimizer.learning_rate = fit["learning_rate"]
    model.compile(
        optimizer,
        "sparse_categorical_crossentropy",
        metrics=["accuracy"],
        steps_per_execution=steps_per_execution,
    )
    return model


def respond(answer: dict[str, Any]) -> None:
    print(json.dumps(answer), flush=True)


def main() -> None:
    trainer = None
    respond({"keras": keras.__version__})
    for line in sys.stdin:
        request = json.loads(line)
        if "network" in request:
            trainer = None
            keras.backend.clear_session()
            gc.collect()
            trainer = Trainer(**request)
            respond({"ready": True})
        elif trainer is not None:
            respond({"seconds": trainer.train(request["steps"], request["epochs"])})


if __name__ == "__main__":
    main()
