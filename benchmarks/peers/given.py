"""Reads the arguments of a peer's script and prints its result. Does not import Keras.

`KERAS_BACKEND=jax python -m benchmarks.peers.NAME_search rows.npz search.json seed folder` runs one script.
"""

import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

Values = dict[str, Any]


class Arguments(NamedTuple):
    """Arguments of a peer's script."""

    rows: str
    search: str
    seed: int
    folder: str

    def plan(self) -> dict[str, Any]:
        """Return the search: its space, fixed values and number of trials."""
        return dict(json.loads(Path(self.search).read_text()))


def arguments() -> Arguments:
    rows, search, seed, folder = sys.argv[1:]
    return Arguments(rows, search, int(seed), folder)


def suggested(trial: Any, entry: dict[str, Any]) -> Any:
    """Return the value that Optuna suggests for an entry of the space."""
    name, step = entry["name"], entry.get("step")
    if entry["kind"] == "int":
        return trial.suggest_int(name, entry["min"], entry["max"], step=step or 1)
    if entry["kind"] == "float":
        log = entry.get("sampling") == "log"
        return trial.suggest_float(name, entry["min"], entry["max"], step=step, log=log)
    return trial.suggest_categorical(name, entry["values"])


def print_result(*, score: float, trainings: int, epochs: int, configurations: list[Values]) -> None:
    """Print the result as the last line."""
    distinct = len({json.dumps(configuration, sort_keys=True) for configuration in configurations})
    print(json.dumps({"score": score, "trainings": trainings, "epochs": epochs, "distinct": distinct}))
