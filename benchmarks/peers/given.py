"""What the script of a peer is started with, and what it answers. Nothing here imports Keras.

`KERAS_BACKEND=jax python -m benchmarks.peers.NAME_search rows.npz search.json seed folder` runs one alone.
"""

import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

Values = dict[str, Any]


class Arguments(NamedTuple):
    """What a script is started with."""

    rows: str
    search: str
    seed: int
    folder: str

    def plan(self) -> dict[str, Any]:
        """Return the search: its space, what is fixed, how much is trained."""
        return dict(json.loads(Path(self.search).read_text()))


def arguments() -> Arguments:
    rows, search, seed, folder = sys.argv[1:]
    return Arguments(rows, search, int(seed), folder)


def suggested(trial: Any, entry: dict[str, Any]) -> Any:
    """Return what Optuna draws for an entry of the space."""
    name, step = entry["name"], entry.get("step")
    if entry["kind"] == "int":
        return trial.suggest_int(name, entry["min"], entry["max"], step=step or 1)
    if entry["kind"] == "float":
        log = entry.get("sampling") == "log"
        return trial.suggest_float(name, entry["min"], entry["max"], step=step, log=log)
    return trial.suggest_categorical(name, entry["values"])


def say(*, score: float, trainings: int, epochs: int, configurations: list[Values]) -> None:
    """Print what was found, as the last line."""
    distinct = len({json.dumps(each, sort_keys=True) for each in configurations})
    print(json.dumps({"score": score, "trainings": trainings, "epochs": epochs, "distinct": distinct}))
