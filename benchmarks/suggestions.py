"""Measures the time for the next suggestion of every algorithm, compared with KerasTuner and Optuna.

    python -m benchmarks.suggestions [--repeats 20]

CPU time in milliseconds, without imports and first calls; wall time would depend on other load on the
machine. `parse` is the time that a worker needs to read the request.
"""

import argparse
import math
import os
import random
import time
from collections.abc import Callable, Iterator
from typing import Any

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "KERAS_BACKEND": "jax"}

import keras_tuner
import optuna
from keras_tuner.engine.trial import Trial, TrialStatus

from jobs.messages.suggest import SuggestRequest, TrialRow
from jobs.spec.algorithms import ALGORITHMS
from jobs.spec.sections.search import SearchSpec
from jobs.spec.space.search_space import Values, sample
from workers.engine.search.keras_tuner_bayesian import to_config, to_oracle
from workers.engine.search.suggest import suggest

SPACE = [
    {"name": "units", "kind": "int", "min": 16, "max": 256, "step": 16},
    {"name": "layers", "kind": "int", "min": 1, "max": 4},
    {"name": "optimizer", "kind": "choice", "values": ["adam", "rmsprop", "sgd"]},
    {"name": "dropout", "kind": "float", "min": 0.0, "max": 0.5, "step": 0.05},
    {"name": "learning_rate", "kind": "float", "min": 1e-4, "max": 1e-1, "sampling": "log"},
    {
        "name": "clipnorm",
        "kind": "float",
        "min": 0.1,
        "max": 10.0,
        "when": {"name": "optimizer", "in": ["sgd"]},
    },
]
SIZES = (100, 1000, 10_000)
SLOW = {"keras_tuner_bayesian": 100, "KerasTuner's oracle": 100}
"""Largest number of trials for these, with few repeats: at 1,000 a round would take minutes."""
LADDER = (1, 3, 11, 33, 100)


def loss(values: Values) -> float:
    rate, width = float(values["learning_rate"]), float(values["units"])
    return (math.log10(rate) + 2.3) ** 2 + ((width - 128) / 128) ** 2 + (float(values["dropout"]) - 0.2) ** 2


def spec(algorithm: str) -> SearchSpec:
    space = (
        SPACE
        if algorithm != "grid"
        else [{**p, "step": 1.2} if p["name"] == "learning_rate" else p for p in SPACE]
    )
    return SearchSpec.model_validate({"algorithm": algorithm, "space": space, "max_trials": 100_000})


def rows_for(search: SearchSpec, size: int) -> tuple[TrialRow, ...]:
    """Return `size` trials, a few of them running; with rungs, most of the others are paused at one."""
    rng = random.Random(0)
    rows = []
    for number in range(1, size + 1):
        values = sample(search.space, rng)
        row: dict[str, Any] = {
            "number": number,
            "values": values,
            "state": "completed",
            "score": loss(values),
        }
        if number > size - 4:
            row |= {"state": "running", "score": None}
        elif search.info.has_rungs:
            rung = min(int(-math.log(1 - rng.random(), 3)), len(LADDER) - 1)
            row |= {"state": "paused", "rung": rung, "epochs": LADDER[rung], "bracket": number // 500}
            row["rungs"] = tuple(loss(values) + 1 / epochs for epochs in LADDER[: rung + 1])
        rows.append(TrialRow.model_validate(row))
    return tuple(rows)


def ours(algorithm: str, size: int) -> Callable[[], object]:
    search = spec(algorithm)
    request = SuggestRequest(search=search, trials=rows_for(search, size), count=1)
    return lambda: suggest(request)


def parsing(size: int) -> Callable[[], object]:
    search = spec("random")
    body = SuggestRequest(search=search, trials=rows_for(search, size)).model_dump(mode="json")
    return lambda: SuggestRequest.model_validate(body)


def optunas(size: int) -> Callable[[], object]:
    """Return a function that asks Optuna's sampler with default settings, in a study with `size` trials."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=0))

    def ask() -> optuna.Trial:
        trial = study.ask()
        trial.suggest_int("units", 16, 256, step=16)
        trial.suggest_int("layers", 1, 4)
        if trial.suggest_categorical("optimizer", ["adam", "rmsprop", "sgd"]) == "sgd":
            trial.suggest_float("clipnorm", 0.1, 10.0)
        trial.suggest_float("dropout", 0.0, 0.5, step=0.05)
        trial.suggest_float("learning_rate", 1e-4, 1e-1, log=True)
        return trial

    sampler, study.sampler = study.sampler, optuna.samplers.RandomSampler(seed=0)
    for _ in range(size):
        trial = ask()
        study.tell(trial, loss(trial.params))
    study.sampler = sampler
    return ask


def keras_tuners(size: int) -> Callable[[], object]:
    """Return a function that asks KerasTuner's Bayesian oracle with default settings and `size` trials."""
    search = spec("random")
    hyperparameters = keras_tuner.HyperParameters.from_config(to_config(search.space))
    oracle = keras_tuner.oracles.BayesianOptimizationOracle(
        objective=keras_tuner.Objective("val_loss", "min"), hyperparameters=hyperparameters,
        num_initial_points=1, tune_new_entries=False, seed=1,
    )  # fmt: skip
    oracle.verbose = 0
    for row in rows_for(search, size):
        if row.score is not None:
            space = oracle.get_space()
            space.values = to_oracle(search.space, row.values)
            trial = Trial(space, trial_id=str(row.number), status=TrialStatus.COMPLETED)
            trial.score = row.score
            oracle.trials[trial.trial_id] = trial
    return lambda: oracle.populate_space("next")


def contestants(size: int) -> Iterator[tuple[str, Callable[[], object]]]:
    for algorithm in ALGORITHMS:
        if size <= SLOW.get(algorithm, size):
            yield algorithm, ours(algorithm, size)
    yield "Optuna's TPE", optunas(size)
    if size <= SLOW["KerasTuner's oracle"]:
        yield "KerasTuner's oracle", keras_tuners(size)
    yield "parse", parsing(size)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="benchmarks.suggestions",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--repeats", type=int, default=20)
    repeats = parser.parse_args().repeats
    print(f"{'':22}{'trials':>8}{'p50 ms':>10}{'p95 ms':>10}")
    for size in SIZES:
        for name, ask in contestants(size):
            times = []
            ask()
            for _ in range(3 if name in SLOW else repeats):
                began = time.process_time()
                ask()
                times.append(1000 * (time.process_time() - began))
            times.sort()
            p95 = times[min(math.ceil(0.95 * len(times)), len(times)) - 1]
            print(f"{name:22}{size:>8}{times[len(times) // 2]:>10.1f}{p95:>10.1f}", flush=True)


if __name__ == "__main__":
    main()
