"""Keras' `fit` in a process of its own, which trains when it is told to.

`python -m benchmarks.peers.keras_fit` says which Keras it has, then answers each line of JSON with another.
`{"network", "rows", "fit", "steps"}` compiles a saved network once for each `steps_per_execution` in `steps`
and trains one epoch with each; `{"steps", "epochs"}` trains that many epochs and answers with CPU seconds.
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
    """One network on its rows, compiled as a user of Keras compiles it."""

    def __init__(self, network: str, rows: str, fit: dict[str, Any], steps: list[int]) -> None:
        with np.load(rows) as held:
            self._x, self._y = held["x"], held["y"]
        self._batch_size = fit["batch_size"]
        self._models = {many: compiled(network, fit, many) for many in steps}
        for many in steps:
            self.train(many, 1)

    def train(self, steps: int, epochs: int) -> float:
        """Train so many epochs; return the CPU seconds of this process, all threads together."""
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


def say(answer: dict[str, Any]) -> None:
    print(json.dumps(answer), flush=True)


def main() -> None:
    trainer = None
    say({"keras": keras.__version__})
    for line in sys.stdin:
        told = json.loads(line)
        if "network" in told:
            trainer = None
            keras.backend.clear_session()
            gc.collect()
            trainer = Trainer(**told)
            say({"ready": True})
        elif trainer is not None:
            say({"seconds": trainer.train(told["steps"], told["epochs"])})


if __name__ == "__main__":
    main()
