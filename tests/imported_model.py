"""Writes a foreign model: a body inside the model, and a head for two classes from four numbers."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def imported_model(file: Path) -> bytes:
    """Return the content of such a `.keras` file, which a process with Keras writes to `file`."""
    environment = {**os.environ, "KERAS_BACKEND": "jax", "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, "-m", "tests.imported_model", str(file)]
    subprocess.run(command, check=True, cwd=ROOT, env=environment)
    return file.read_bytes()


def save_imported_model(file: Path) -> None:
    """Write such a file in this process, which has imported Keras."""
    import keras

    low = keras.layers.Dense(8, activation="relu", name="low")
    body = keras.Sequential([keras.Input((4,)), low, keras.layers.Dense(8, name="high")], name="body")
    inputs = keras.Input((4,))
    top = keras.layers.Dense(2, activation="softmax", name="top")
    keras.Model(inputs, top(body(inputs))).save(file)


def main(path: str) -> None:
    """Write the file in a separate process."""
    from workers.runner.libraries import import_keras

    import_keras()
    save_imported_model(Path(path))


if __name__ == "__main__":
    main(sys.argv[1])
