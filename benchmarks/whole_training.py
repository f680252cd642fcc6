"""Compares a training, from submitting to the end, with the same training as a Keras script.

    python -m benchmarks.whole_training [--rounds 3] [--only cnn|mlp] [--filters 16 32 64] [--epochs 5 20]

One network has two convolutions and trains on 1,200 images of 28×28, the other is a dense network of 2 × 64
and trains on 500,000 rows of 30 features. A round is one training by each side. Ours runs on an installation
without compiled programs and without standby runners. Its time is that from the request to the state
`completed`, with validation, checkpoints, evaluation on test rows and the saved model. The script's time is
that of its whole process: imports, `fit` with validation, `save`, `evaluate`. Goal: ours is never slower.
"""

import argparse
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.submit_to_first_step import empty_compile_cache
from tests.flow.yard import RunningYard, open_yard

ROOT = Path(__file__).parents[1]
IMAGES, ROWS = "images", "rows"


def write_images(path: Path) -> None:
    """Write noisy images of ten classes, (1200, 28, 28, 1); the class decides which row is brightest."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 10, 1_200)
    x = rng.normal(0, 1, (1_200, 28, 28)).astype(np.float32)
    x[np.arange(1_200), 2 * y + 4] += 1.0
    np.savez(path, x=x[..., None], y=y)


def write_rows(path: Path) -> None:
    """Write 500,000 rows of 30 features in two classes, which a line through the origin divides."""
    rng = np.random.default_rng(0)
    x = rng.normal(0, 1, (500_000, 30)).astype(np.float32)
    y = (x @ rng.normal(0, 1, 30) > 0).astype(np.int64)
    np.savez(path, x=x, y=y)


def trainings(options: argparse.Namespace) -> Iterator[tuple[str, dict[str, Any]]]:
    """List the trainings as pairs of the data set and the settings."""
    if options.only != "mlp":
        for filters, epochs in itertools.product(options.filters, options.epochs):
            common = {"template": "cnn", "layers": 2, "batch_size": 32}
            yield IMAGES, common | {"filters": filters, "epochs": epochs}
    if options.only != "cnn":
        yield ROWS, {"template": "mlp", "layers": 2, "units": 64, "batch_size": 512, "epochs": 8}


def spec_of(dataset: str, training: dict[str, Any]) -> dict[str, Any]:
    """Return a training as an experiment."""
    args = {name: training[name] for name in ("layers", "filters", "units") if name in training}
    return {
        "version": 1,
        "data": {"dataset": dataset, "split": {"validation": 0.2, "test": 0.2, "seed": 0}},
        "model": {"kind": "template", "template": training["template"], "args": args},
        "fit": {"epochs": training["epochs"], "batch_size": training["batch_size"]},
        "resources": {"slots": 2},  # a slot is a thread; the script uses all cores of a machine with two
    }


def ours(yard: RunningYard, dataset: str, training: dict[str, Any]) -> float:
    """Return the seconds from submitting a training to its end, without compiled programs."""
    empty_compile_cache(yard.home)
    body = {"project": "flow", "name": "whole", "spec": spec_of(dataset, training)}
    experiment = yard.ada.post("/experiments", body)
    began = time.perf_counter()
    job = int(yard.ada.post(f"/experiments/{experiment['id']}/submit")["job"])
    while yard.job(job)["state"] not in ("completed", "failed", "stopped"):
        time.sleep(0.2)  # as often as a script would poll
    seconds = time.perf_counter() - began
    yard.until_completed(job)
    return seconds


def script(rows: Path, training: dict[str, Any], folder: Path) -> float:
    """Return the seconds of the script that trains the same network with Keras alone."""
    plan = folder / "training.json"
    plan.write_text(json.dumps(training))
    command = [sys.executable, "-m", "benchmarks.peers.keras_training", rows, plan, folder / "model.keras"]
    began = time.perf_counter()
    subprocess.run(
        command, cwd=ROOT, env=os.environ | {"KERAS_BACKEND": "jax"}, check=True, capture_output=True
    )
    return time.perf_counter() - began


def compare(options: argparse.Namespace, folder: Path) -> None:
    """Run all rounds and print the medians and the median of the paired ratios."""
    files = {IMAGES: folder / "images.npz", ROWS: folder / "rows.npz"}
    write_images(files[IMAGES])
    write_rows(files[ROWS])
    poll = {"TRAINYARD_NODE_POLL": "2", "TRAINYARD_NODE_SILENCE": "60"}  # the default settings
    with open_yard(folder / "home", TRAINYARD_STANDBY="0", **poll) as yard:
        yard.open()
        for name in {dataset for dataset, _ in trainings(options)}:
            yard.upload(name, f"{name}.npz", files[name].read_bytes())
        ours(yard, "iris", {"template": "mlp", "epochs": 1, "batch_size": 32})  # starts the fork server
        print(f"{'':34}{'ours, s':>10}{'script, s':>10}{'script / ours':>15}")
        for dataset, training in trainings(options):
            pairs = []
            for turn in range(options.rounds):
                sides = (
                    lambda dataset=dataset, training=training: ours(yard, dataset, training),
                    lambda dataset=dataset, training=training: script(files[dataset], training, folder),
                )
                times = [sides[(turn + side) % 2]() for side in range(2)]
                pairs.append((times[turn % 2], times[(turn + 1) % 2]))
            mine, theirs = (statistics.median(column) for column in zip(*pairs, strict=True))
            ratio = statistics.median(their / my for my, their in pairs)
            size = training.get("filters", training.get("units"))
            name = f"{training['template']}, {size} wide, {training['epochs']} epochs"
            print(f"{name:34}{mine:10.1f}{theirs:10.1f}{ratio:15.2f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="benchmarks.whole_training",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=("cnn", "mlp"))
    parser.add_argument("--filters", type=int, nargs="+", default=[16, 32, 64])
    parser.add_argument("--epochs", type=int, nargs="+", default=[5, 20])
    with tempfile.TemporaryDirectory() as folder:
        compare(parser.parse_args(), Path(folder))
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the end")


if __name__ == "__main__":
    main()
