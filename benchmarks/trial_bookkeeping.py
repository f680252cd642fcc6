"""Measures the overhead of short trials: a search of one-epoch trials, compared with Keras in one process.

Run `python -m benchmarks.trial_bookkeeping [--trials 200] [--slots 1] [--untrained]`. A complete installation
is started in its own home: web, scheduler, broker, a worker and its runners. It searches random learning
rates for a small network on the digits. Then one process builds, compiles and fits the same number of
networks (at most 200) for one epoch each with Keras alone. The output is milliseconds per trial of both,
their ratio, and the CPU time per trial of every process that does not train. Startup is not counted. With
`--untrained` the trials sleep for 20 ms instead of training, which leaves only the overhead.
"""

import argparse
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from tests.flow.yard import RunningYard, open_yard

UNITS, BATCH = 32, 128
MAX_PLAIN = 200
"""Maximum number of trainings with Keras alone; each takes a second or more."""
UNTRAINED = {"TRAINYARD_RUNNER_MODULE": "benchmarks.untrained_runner", "TRAINYARD_FORK_RUNNERS": "0"}
BOOKKEEPERS = ("web", "scheduler", "worker-1", "consumer", "broker")


class Measured(NamedTuple):
    wall: float  # seconds from the job's start to its end
    trained: float  # seconds during which trials ran, summed over slots
    cpu: dict[str, float]  # seconds of each process meanwhile
    attempts: int


def spec(trials: int) -> dict[str, Any]:
    """Return the search. All trials have the same shapes, so that neither side compiles more than it must."""
    rate = {"name": "learning_rate", "kind": "float", "min": 1e-4, "max": 1e-1, "sampling": "log"}
    return {
        "version": 1,
        "data": {"dataset": "digits", "split": {"validation": 0.2, "test": 0.2, "seed": 0}},
        "model": {"kind": "template", "template": "mlp", "args": {"units": UNITS, "layers": 1}},
        "fit": {"epochs": 1, "batch_size": BATCH, "seed": 1},
        "search": {
            "algorithm": "random",
            "objective": {"metric": "val_loss", "direction": "min"},
            "max_trials": trials,
            "executions_per_trial": 1,
            "seed": 1,
            "space": [rate],
        },
    }


def ours(trials: int, slots: int, home: Path, **environment: str) -> Measured:
    """Run the search in its own installation."""
    with open_yard(home, **environment) as yard:
        yard.open(slots=slots)
        yard.until_ready("digits")
        before = cpu_of(yard)
        job = yard.submit(spec(trials))
        assert yard.until_final(job)["state"] == "completed", yard.log_of(job)
        after = cpu_of(yard)
        spent = {part: after.get(part, 0.0) - before.get(part, 0.0) for part in BOOKKEEPERS}
        return Measured(*times(home, job), spent, attempts(home, job))


def cpu_of(yard: RunningYard) -> dict[str, float]:
    """Return the CPU seconds of each process, without the worker's runners."""
    parts = yard.parts()
    consumers = [child for child in parts["worker-1"].children() if "celery" in child.cmdline()]
    all_parts = parts | {"consumer": consumers[0]} if consumers else parts
    return {name: sum(process.cpu_times()[:2]) for name, process in all_parts.items()}


def _ask(home: Path, query: str, job: int) -> tuple[Any, ...]:
    with sqlite3.connect(f"file:{home / 'trainyard.sqlite3'}?mode=ro", uri=True) as database:
        row: tuple[Any, ...] = database.execute(query, [job]).fetchone()
    return row


def times(home: Path, job: int) -> tuple[float, float]:
    """Return the seconds of the whole search and of all its trials together."""
    seconds = "(julianday(finished) - julianday(started)) * 86400"
    whole = _ask(home, f"SELECT {seconds} FROM jobs_job WHERE id = ?", job)[0]
    return float(whole), float(_ask(home, f"SELECT sum({seconds}) FROM jobs_trial WHERE job_id = ?", job)[0])


def attempts(home: Path, job: int) -> int:
    """Return the number of attempts that ran the trials."""
    return int(_ask(home, "SELECT count(*) FROM jobs_attempt WHERE job_id = ?", job)[0])


def plain(trials: int) -> float:
    """Return the seconds that Keras alone takes for this number of trainings, in its own process."""
    fitted = min(trials, MAX_PLAIN)
    command = [sys.executable, "-m", "benchmarks.trial_bookkeeping", "--plain", str(fitted)]
    environment = os.environ | {"KERAS_BACKEND": "jax", "NPROC": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return float(json.loads(done.stdout.splitlines()[-1])) * trials / fitted


def fit_all(trials: int) -> float:
    """Build, compile and fit one network after another; return the seconds without imports."""
    import keras
    import numpy as np
    from sklearn.datasets import load_digits

    x, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(x))
    train, validation = order[: int(0.6 * len(x))], order[int(0.6 * len(x)) : int(0.8 * len(x))]
    x = x.astype("float32")
    rates = 10 ** np.random.default_rng(1).uniform(-4, -1, trials)
    began = time.perf_counter()
    for number, rate in enumerate(rates):
        keras.backend.clear_session()
        keras.utils.set_random_seed(number)
        normalize = keras.layers.Normalization(mean=x[train].mean(0), variance=x[train].var(0) + 1e-6)
        layers = [normalize, keras.layers.Dense(UNITS, activation="relu"), keras.layers.Dense(10, "softmax")]
        model = keras.Sequential([keras.Input((64,)), *layers])
        model.compile(keras.optimizers.Adam(rate), "sparse_categorical_crossentropy", metrics=["accuracy"])
        model.fit(
            x[train],
            y[train],
            batch_size=BATCH,
            epochs=1,
            validation_data=(x[validation], y[validation]),
            verbose=0,
        )
    return time.perf_counter() - began


def report(trials: int, slots: int, found: Measured, theirs: float | None) -> None:
    """Print milliseconds per trial."""
    print(f"{trials} trials of one epoch in {found.attempts} attempts; {slots} slots, {os.cpu_count()} cores")
    print(f"{'':44}{'ms per trial':>12}")
    rows = {
        "wall, the search": found.wall,
        **({} if theirs is None else {"wall, Keras alone in one process": theirs}),
        "of the search: trials running (each slot)": found.trained,
        "of the search: slots between trials": found.wall * slots - found.trained,
        **{f"CPU, {part}": seconds for part, seconds in found.cpu.items()},
        "CPU, all of these": sum(found.cpu.values()),
    }
    for name, seconds in rows.items():
        print(f"{name:44}{seconds / trials * 1e3:12.2f}")
    if theirs is not None:
        print(f"{'Keras alone / the search':44}{theirs / found.wall:12.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.trial_bookkeeping", description=__doc__)
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--slots", type=int, default=1)
    parser.add_argument("--untrained", action="store_true", help="overhead only: the trials do not train")
    parser.add_argument("--plain", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.plain is not None:
        print(fit_all(options.plain))
        return
    with tempfile.TemporaryDirectory() as folder:
        environment = UNTRAINED if options.untrained else {}
        results = ours(options.trials, options.slots, Path(folder) / "home", **environment)
    report(options.trials, options.slots, results, None if options.untrained else plain(options.trials))


if __name__ == "__main__":
    main()
