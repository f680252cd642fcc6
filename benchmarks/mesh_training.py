"""Compares our steps on a mesh with Keras' `fit` under the same distribution.

    python -m benchmarks.mesh_training [--rounds 15] [--devices 2 4]

Each number of simulated devices has a process of its own. Both sides train the same model on the same rows,
in the same process under the same distribution; `fit` gets the rows as arrays, which it sends batch by batch.
In a round each side trains as many epochs as `fit` does in about half a second, one after the other, and the
sides take turns in beginning. The figures are medians of the ratios of a round, of CPU time and of wall time.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from workers.runner.environment import Environment
from workers.runner.libraries import import_keras

TURN_SECONDS = 0.5
ROWS = 2048
CASES: dict[str, dict[str, Any]] = {
    "mlp": {"template": "mlp", "shape": (64,), "args": {"units": 128, "layers": 2}, "batch": 128},
    "cnn": {"template": "cnn", "shape": (8, 8, 1), "args": {"filters": 16, "layers": 2}, "batch": 64},
    "cnn of large images": {
        "template": "cnn", "shape": (16, 16, 1), "args": {"filters": 16, "layers": 2}, "batch": 128,
    },
}  # fmt: skip
"""The last one computes for so long that the work around a step counts little."""


class Turn(NamedTuple):
    """How long one side took for its epochs, in seconds."""

    cpu: float
    wall: float


def measure(devices: int, rounds: int) -> None:
    """Print each case's ratios as a line of JSON. Runs in a process with so many devices."""
    Environment(threads=2, platform="cpu", simulated_devices=devices).apply()
    import_keras()
    for name in CASES:
        ours, fit = sides(name, devices)
        ours(2), fit(2)
        epochs = max(1, round(TURN_SECONDS / fit(1).wall))
        turns = [
            (ours(epochs), fit(epochs)) if turn % 2 else tuple(reversed((fit(epochs), ours(epochs))))
            for turn in range(rounds)
        ]
        ratios = {kind: [getattr(a, kind) / getattr(b, kind) for a, b in turns] for kind in Turn._fields}
        line = {"devices": devices, "case": name, "epochs": epochs, **ratios}
        sys.stdout.write(json.dumps(line) + "\n")
        sys.stdout.flush()


def sides(name: str, devices: int) -> tuple[Callable[[int], Turn], Callable[[int], Turn]]:
    """Return functions that train a case for some epochs: ours, and with `fit`."""
    import numpy as np

    from jobs.spec.data.profile import Profile
    from jobs.spec.experiment import ExperimentSpec
    from workers.engine.data.dataset import Dataset
    from workers.engine.data.split import Parts
    from workers.engine.training.prepare import prepare

    case, rng = CASES[name], np.random.default_rng(0)
    profile = Profile(
        rows=ROWS, kind="image" if len(case["shape"]) > 1 else "vector", task="multiclass", target="y",
        features=("x",), input_shape=case["shape"], outputs=10, class_labels=tuple("0123456789"), columns=(),
        preview=(),
    )  # fmt: skip
    rows = np.arange(ROWS)
    x = rng.normal(size=(ROWS, *case["shape"])).astype(np.float32)
    dataset = Dataset(
        x,
        rng.integers(0, 10, ROWS),
        profile,
        Parts(train=rows, validation=rows[:10], test=rows[:10]),
        "noise",
    )
    spec = ExperimentSpec.model_validate(
        {
            "data": {"dataset": "noise"},
            "model": {"kind": "template", "template": case["template"], "args": case["args"]},
            "fit": {"batch_size": case["batch"], "optimizer": "adam", "learning_rate": 0.001},
            "mesh": {"shape": [devices], "axis_names": ["data"], "simulate": devices},
        }
    )
    prepared = prepare(spec, dataset, rows, name="timed", seed=0)
    loop, done = prepared.loop(epochs=10**6), 0

    def ours(epochs: int) -> None:
        nonlocal done
        for _ in range(epochs):
            done += 1
            loop.epoch(done, 0, [], lambda _: None)

    model, batches = prepared.model, prepared.batches

    def fit(epochs: int) -> None:
        model.fit(
            batches.x,
            batches.y,
            sample_weight=batches.weights,
            batch_size=batches.size,
            epochs=epochs,
            verbose=0,
        )

    return timed(ours), timed(fit)


def timed(train: Callable[[int], None]) -> Callable[[int], Turn]:
    """Return a function that measures how long some epochs take."""

    def measured(epochs: int) -> Turn:
        cpu, wall = time.process_time(), time.perf_counter()
        train(epochs)
        return Turn(time.process_time() - cpu, time.perf_counter() - wall)

    return measured


def report(line: dict[str, Any]) -> str:
    """Return a row of the table: the medians, and the quartiles of the CPU time."""
    low, middle, high = statistics.quantiles(line["cpu"], n=4)
    wall = statistics.median(line["wall"])
    return f"| {line['case']} × {line['devices']} | {middle:.2f} ({low:.2f} to {high:.2f}) | {wall:.2f} |"


def main() -> None:
    """Measure each number of devices in a process of its own, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--devices", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--measure", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure is not None:
        measure(options.measure, options.rounds)
        return
    print("| model × devices | CPU time, ours / fit | wall time |\n|---|---|---|", flush=True)
    for devices in options.devices:
        command = [sys.executable, "-m", "benchmarks.mesh_training", "--measure", str(devices)]
        done = subprocess.run(
            [*command, "--rounds", str(options.rounds)],
            stdout=subprocess.PIPE,
            text=True,
            check=True,
            env=os.environ,
        )
        for line in done.stdout.splitlines():
            if line.startswith("{"):
                print(report(json.loads(line)), flush=True)


if __name__ == "__main__":
    main()
