"""An epoch by our loop and by Keras' `fit`, on models already compiled.

Run `python -m benchmarks.fused_training [--pairs 15] [--only mlp|every]`. A pair is as many epochs by each as
take half a second, in turn, on the same rows and the same network; what is compared is CPU time. `fit` runs
with shuffling and its best `steps_per_execution`. First dense networks of many widths and batches, then every
template of ours, where our loop has chosen its way by timing both on the model, as it does in long trainings.
"""

import argparse
import os
import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple

os.environ.update(KERAS_BACKEND="jax", JAX_PLATFORMS="cpu")

import keras
import numpy as np

from jobs.spec.experiment import ExperimentSpec
from jobs.spec.profile import Profile
from workers.engine.data.dataset import Dataset
from workers.engine.data.split import Parts
from workers.engine.setup import Prepared, prepare

STEPS_PER_EXECUTION = (1, 8, 32)
PAIR_SECONDS = 0.5
LONG = 1e9
"""Seconds of training after which every program has timed both ways."""


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


def rows_of(case: Case) -> Dataset:
    """Return rows of noise: how long a step takes does not depend on what is in them."""
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
            "fit": {"batch_size": case.batch_size},
        }
    )
    dataset = rows_of(case)
    return prepare(spec, dataset, dataset.parts.train, name="timed", seed=0)


def fitting(case: Case, steps_per_execution: int) -> Callable[[int], None]:
    """Return what trains so many epochs with `fit`."""
    made = prepared(case)
    model, batches = made.model, made.batches
    model.compile(
        keras.optimizers.Adam(), model.loss, metrics=["accuracy"], steps_per_execution=steps_per_execution
    )

    def train(epochs: int) -> None:
        model.fit(batches.x, batches.y, batch_size=case.batch_size, epochs=epochs, verbose=0)

    return train


def looping(case: Case) -> tuple[Callable[[int], None], Callable[[], str]]:
    """Return what trains so many epochs with our loop, and what says which way it has chosen."""
    made = prepared(case)
    loop = made.loop()
    done = 0

    def train(epochs: int) -> None:
        nonlocal done
        for _ in range(epochs):
            done += 1
            loop.epoch(done, 0, [], lambda _: None)

    train(2)
    assert made.program is not None
    made.program.trained = LONG
    train(1)  # times both ways
    return train, lambda: loop.way


def cpu_of(train: Callable[[int], None], epochs: int) -> float:
    began = time.process_time()
    train(epochs)
    return (time.process_time() - began) / epochs


def best_fit(case: Case) -> tuple[Callable[[int], None], int]:
    """Return the quickest `fit` over `STEPS_PER_EXECUTION`, and how many epochs make a pair."""
    trains = [fitting(case, steps) for steps in STEPS_PER_EXECUTION]
    for train in trains:
        train(1)
    best = min(trains, key=lambda train: min(cpu_of(train, 2) for _ in range(2)))
    return best, max(1, round(PAIR_SECONDS / cpu_of(best, 2)))


def compare(case: Case, pairs: int) -> None:
    """Time the pairs and print a line."""
    theirs, epochs = best_fit(case)
    ours, way = looping(case)
    found = [(cpu_of(theirs, epochs), cpu_of(ours, epochs)) for _ in range(pairs)]
    ratios = sorted(a / b for a, b in found)
    milliseconds = [1000 * statistics.median(column) for column in zip(*found, strict=True)]
    print(
        f"{case.name:30} {case.args.get('units', '')!s:>5} {case.batch_size:>5} {milliseconds[0]:9.1f} "
        f"{milliseconds[1]:9.1f} {statistics.median(ratios):7.2f} {ratios[len(ratios) // 4]:7.2f} "
        f"{ratios[-1 - len(ratios) // 4]:7.2f}  {way()}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.fused_training", description=__doc__)
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--only", choices=("mlp", "every"))
    options = parser.parse_args()
    print(f"keras {keras.__version__}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    print(f"{'':30} units batch  fit, ms  ours, ms   ratio     25%     75%  way")
    for name, cases in (("mlp", MLPS), ("every", EVERY)):
        for case in cases if options.only in (None, name) else ():
            compare(case, options.pairs)


if __name__ == "__main__":
    main()
