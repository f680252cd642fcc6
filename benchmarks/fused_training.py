"""Compares an epoch of our loop with one of Keras' `fit`, on compiled models.

    python -m benchmarks.fused_training [--pairs 15] [--only mlp|every] [--features 64 784]
        [--newest-keras FOLDER]

In a round each side trains as many epochs as `fit` does in half a second, one side after another, on the same
shuffled rows, with the same network (saved and loaded), optimizer and batch size. CPU time is compared. `fit`
runs with its default of one step per execution, and with its best `steps_per_execution`. Dense networks of
many widths and batch sizes come first, then every template. Our loop has chosen its step mode by timing both
modes on the model, as in long trainings.

The other side is the installed Keras and, if its folder is given, another version. To create the folder:

    pip install --target FOLDER --no-deps --pre keras-nightly
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Self

os.environ.update(KERAS_BACKEND="jax", JAX_PLATFORMS="cpu")

import numpy as np

from benchmarks.peers.bare_jax import trains
from jobs.spec.data.profile import Profile
from jobs.spec.experiment import ExperimentSpec
from workers.engine.data.dataset import Dataset
from workers.engine.data.split import Parts
from workers.engine.training.prepare import Prepared, prepare

ROOT = Path(__file__).parents[1]
STEPS_PER_EXECUTION = (1, 8, 32)
TURN_SECONDS = 0.5
SELECTION_ROUNDS = 3
MEASUREMENTS = 20
"""More epochs than timing both step modes has measurements."""
LONG_SECONDS = 1e5
"""Seconds of training after which every program has timed both step modes."""
FIT: dict[str, Any] = {"optimizer": "adam", "learning_rate": 0.001}

Train = Callable[[int], float]
"""Trains the given number of epochs and returns the CPU seconds."""


class Case(NamedTuple):
    """One model on one shape of rows."""

    name: str
    template: str
    shape: tuple[int, ...]
    args: dict[str, Any]
    batch_size: int
    rows: int = 8192


MLPS = [
    Case(f"mlp, {features} features", "mlp", (features,), {"units": width}, batch)
    for features in (64, 784)
    for width in (32, 64, 256)
    for batch in (32, 128, 512)
]
EVERY = [
    Case("linear", "linear", (64,), {}, 128),
    Case("mlp, dropout and batch norm", "mlp", (64,), {"units": 64, "dropout": 0.3, "batch_norm": True}, 128),
    Case("mlp, 3 x 1024", "mlp", (784,), {"units": 1024, "layers": 3}, 128, 2048),
    Case("cnn, 8 x 8 images", "cnn", (8, 8, 1), {"filters": 16, "layers": 2}, 128, 2048),
    Case("cnn, 28 x 28 images", "cnn", (28, 28, 1), {"filters": 32, "layers": 2}, 128, 1024),
    Case("cnn, dropout", "cnn", (28, 28, 1), {"filters": 16, "layers": 1, "dropout": 0.3}, 64, 1024),
]


class Fit:
    """Keras' `fit` in its own process, since two versions of Keras cannot be imported into one.

    Args:
        folder: to import Keras from; None for the installed version.
    """

    def __init__(self, folder: Path | None) -> None:
        path = [str(folder.resolve())] if folder else []
        path += filter(None, [os.environ.get("PYTHONPATH")])
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.peers.keras_fit"],
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(path)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.keras = self._answer()["keras"]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()  # the process ends when its input ends

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"Keras' process ended with {self._process.wait()}")
        return dict(json.loads(line))

    def ask(self, **request: Any) -> dict[str, Any]:
        assert self._process.stdin
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def trains(self) -> dict[int, Train]:
        """Return functions that train the current case, by `steps_per_execution`."""
        return {steps: partial(self._train, steps) for steps in STEPS_PER_EXECUTION}

    def _train(self, steps: int, epochs: int) -> float:
        return float(self.ask(steps=steps, epochs=epochs)["seconds"])


def rows_of(case: Case) -> Dataset:
    """Return random rows; the duration of a step does not depend on their values."""
    rng = np.random.default_rng(0)
    image = len(case.shape) > 1
    profile = Profile(
        rows=case.rows, kind="image" if image else "vector", task="multiclass", target="y", features=("x",),
        input_shape=case.shape, outputs=10, class_labels=tuple("0123456789"), columns=(), preview=(),
    )  # fmt: skip
    everything = np.arange(case.rows)
    parts = Parts(train=everything, validation=everything[:10], test=everything[:10])
    x = rng.normal(size=(case.rows, *case.shape)).astype(np.float32)
    return Dataset(x, rng.integers(0, 10, case.rows), profile, parts, "noise")


def prepared(case: Case) -> Prepared:
    """Build and compile the case."""
    spec = ExperimentSpec.model_validate(
        {
            "data": {"dataset": "noise"},
            "model": {"kind": "template", "template": case.template, "args": case.args},
            "fit": {**FIT, "batch_size": case.batch_size, "shuffle": True},
        }
    )
    dataset = rows_of(case)
    return prepare(spec, dataset, dataset.parts.train, name="timed", seed=0)


def looping(training: Prepared) -> tuple[Train, str]:
    """Return a function that trains with our loop, and the step mode it has chosen."""
    loop = training.loop(epochs=10**6)
    done = 0

    def train(epochs: int) -> float:
        nonlocal done
        began = time.process_time()
        for _ in range(epochs):
            done += 1
            loop.epoch(done, 0, [], lambda _: None)
        return time.process_time() - began

    train(2)
    program = training.program
    assert program is not None
    spent = program.training_time
    spent.steps *= round(LONG_SECONDS / spent.seconds)
    spent.seconds = LONG_SECONDS
    for _ in range(MEASUREMENTS):
        train(1)  # times both step modes, a measurement before each call
    return train, loop.step_mode


def hand_over(case: Case, training: Prepared, fits: list[Fit], folder: Path) -> None:
    """Give every `fit` the network and the rows of our side."""
    network, rows = folder / "network.keras", folder / "rows.npz"
    training.model.save(network)
    np.savez(rows, x=training.batches.x, y=training.batches.y.astype(np.int32))
    settings = {**FIT, "batch_size": case.batch_size}
    for fit in fits:
        fit.ask(network=str(network), rows=str(rows), fit=settings, steps=STEPS_PER_EXECUTION)


def bare(case: Case, training: Prepared) -> Train:
    """Return a function that trains the same network in plain JAX."""
    x, y = training.batches.x, training.batches.y
    return trains(
        x, y, units=case.args["units"], batch_size=case.batch_size, learning_rate=FIT["learning_rate"]
    )


def in_turn(sides: dict[Any, Train], epochs: int, rounds: int) -> dict[Any, list[float]]:
    """Return each side's CPU seconds per epoch for each round; each round starts with another side."""
    seconds = defaultdict(list)
    names = list(sides)
    for turn in range(rounds):
        first = turn % len(names)
        for name in names[first:] + names[:first]:
            seconds[name].append(sides[name](epochs) / epochs)
    return seconds


def compare(case: Case, fits: list[Fit], pairs: int, folder: Path) -> list[list[float]]:
    """Time the rounds and print a line for each Keras.

    Returns:
        For each of them the median ratios of the default and the best `fit` to ours.
    """
    began = time.perf_counter()
    training = prepared(case)
    hand_over(case, training, fits, folder)
    ours, mode = looping(training)
    epochs = max(1, round(TURN_SECONDS / fits[0].trains()[1](1)))
    sides: dict[Any, Train] = {"ours": ours}
    if case in MLPS:
        sides["bare"] = bare(case, training)
    best = {}
    for fit in fits:
        trains = fit.trains()
        tried = in_turn(trains, epochs, SELECTION_ROUNDS)
        best[fit] = min(trains, key=lambda steps: min(tried[steps]))
        sides |= {(fit, steps): trains[steps] for steps in {1, best[fit]}}
    seconds = in_turn(sides, epochs, pairs)
    cost = time.perf_counter() - began
    medians = []
    for fit in fits:
        columns = [ratios(seconds[fit, steps], seconds["ours"]) for steps in (1, best[fit])]
        cells = [case.name, str(case.args.get("units", "")), str(case.batch_size), fit.keras]
        cells += [
            milliseconds(seconds[side]) if side in seconds else "" for side in ("bare", "ours", (fit, 1))
        ]
        cells += [median_and_quartiles(columns[0]), str(best[fit])]
        print_row(
            [
                *cells,
                milliseconds(seconds[fit, best[fit]]),
                median_and_quartiles(columns[1]),
                mode,
                f"{cost:.0f}",
            ]
        )
        medians.append([statistics.median(values) for values in columns])
    return medians


def ratios(theirs: list[float], ours: list[float]) -> list[float]:
    return sorted(a / b for a, b in zip(theirs, ours, strict=True))


def median_and_quartiles(found: list[float]) -> str:
    """Return the median and, in brackets, the quartiles as text."""
    quarter = len(found) // 4
    return f"{statistics.median(found):.2f} ({found[quarter]:.2f}–{found[-1 - quarter]:.2f})"


def milliseconds(seconds: list[float]) -> str:
    return f"{1000 * statistics.median(seconds):.1f}"


HEADS = [
    "",
    "units",
    "batch",
    "keras",
    "bare, ms",
    "ours, ms",
    "fit, ms",
    "fit / ours",
    "best steps",
    "best, ms",
]
HEADS += ["best / ours", "mode", "cost, s"]
WIDTHS = [27, 5, 5, 21, 8, 8, 8, 18, 10, 8, 18, 4, 7]


def print_row(cells: Iterable[str]) -> None:
    print(" | ".join(cell.ljust(width) for cell, width in zip(cells, WIDTHS, strict=True)), flush=True)


def cases_of(options: argparse.Namespace) -> list[Case]:
    dense = [case for case in MLPS if case.shape[0] in options.features]
    return (dense if options.only != "every" else []) + (EVERY if options.only != "mlp" else [])


def report(cases: list[Case], fits: list[Fit], found: list[list[list[float]]]) -> None:
    """Print the smallest median for each number of features, and for all other models together."""
    groups = defaultdict(list)
    for case, medians in zip(cases, found, strict=True):
        groups[case.name if case in MLPS else "every other model"].append(medians)
    for name, rows in groups.items():
        for fit, (plain, best) in zip(fits, np.min(rows, axis=0), strict=True):
            print(
                f"{name}, keras {fit.keras}: fit takes at least {plain:.2f} times ours, "
                f"its best setting {best:.2f}"
            )


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="benchmarks.fused_training",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--only", choices=("mlp", "every"))
    parser.add_argument("--features", type=int, nargs="+", choices=(64, 784), default=(64, 784))
    parser.add_argument("--newest-keras", type=Path, metavar="FOLDER")
    options = parser.parse_args()
    folders = [None, options.newest_keras] if options.newest_keras else [None]
    cases = cases_of(options)
    with ExitStack() as stack:
        fits = [stack.enter_context(Fit(folder)) for folder in folders]
        shared = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, {options.pairs} rounds")
        print_row(HEADS)
        results = [compare(case, fits, options.pairs, shared) for case in cases]
    print(f"load {os.getloadavg()[0]:.1f} at the end")
    report(cases, fits, results)


if __name__ == "__main__":
    main()
