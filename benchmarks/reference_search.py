"""Compares a search in Trainyard with other libraries: the time from submission to the end of the search.

    python -m benchmarks.reference_search [--space digits|breast_cancer|cnn] [--seeds 5]
        [--peers keras_tuner optuna ray_tune] [--ray FOLDER] [--try-threads TRIALS] [--answered]

A round is one search of each with the same seed, one after another: ours on an installation without compiled
programs and without standby runners ("cold"), ours on one with both ("warm"), and each peer as a script in
its own process. All sides train on the same rows, with the same stopping rule and the same number of
trainings: repeated configurations are trained again. Our checkpoints and events are enabled. The output is
medians, the medians of paired ratios, and the best validation scores.

`--try-threads` first times a short search of each peer with a few thread settings; the rounds then use the
fastest. `--answered` adds ours, warm, with repeated configurations answered by their earlier scores, which is
not part of the comparison. Ray is not among our dependencies. To create its folder, which contains only the
missing packages (four of these are for `jsonschema`):

    pip install --target FOLDER --no-deps ray tensorboardX msgpack filelock jsonschema attrs referencing \\
        rpds-py jsonschema-specifications
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
from collections.abc import Callable
from functools import partial
from importlib.metadata import distributions, version
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.peers.running import Found, Peer
from benchmarks.submit_to_first_step import empty_compile_cache, standby_is_ready
from tests.flow.yard import PROJECT, RunningYard, open_yard

PEERS = ("keras_tuner", "optuna", "ray_tune")
INSTALLED = ("keras", "keras-tuner", "optuna", "jax")
UNITS = {"name": "units", "kind": "int", "min": 16, "max": 64, "step": 16}
DEPTH = {"name": "layers", "kind": "int", "min": 1, "max": 3}
SEARCHES: dict[str, dict[str, Any]] = {
    "digits": {
        "dataset": "digits",
        "template": "mlp",
        "space": [UNITS, {"name": "optimizer", "kind": "choice", "values": ["rmsprop", "adam"]}],
        "fixed": {"layers": 1, "dropout": 0.0, "learning_rate": 0.001},
        "epochs": 100,
    },
    "breast_cancer": {
        "dataset": "breast_cancer",
        "template": "mlp",
        "space": [
            DEPTH,
            UNITS,
            {"name": "dropout", "kind": "float", "min": 0.0, "max": 0.5, "step": 0.1},
            {"name": "learning_rate", "kind": "float", "min": 1e-4, "max": 1e-2, "sampling": "log"},
        ],
        "fixed": {"optimizer": "adam"},
        "epochs": 100,
    },
    "cnn": {
        "dataset": "digits",
        "template": "cnn",
        "space": [DEPTH, {"name": "filters", "kind": "int", "min": 8, "max": 24, "step": 8}],
        "fixed": {"units": 64, "dropout": 0.0, "optimizer": "adam", "learning_rate": 0.001},
        "epochs": 10,
    },
}
COMMON = {"batch_size": 128, "patience": 5, "max_trials": 20, "executions": 2}


def spec_of(search: dict[str, Any], algorithm: str, seed: int, duplicates: str = "replace") -> dict[str, Any]:
    """Return the search as an experiment; `replace` repeats configurations once all have been tried."""
    fixed = dict(search["fixed"])
    fit = {name: fixed.pop(name) for name in ("optimizer", "learning_rate") if name in fixed}
    return {
        "version": 1,
        "data": {"dataset": search["dataset"], "split": {"validation": 0.2, "test": 0.2, "seed": 0}},
        "model": {"kind": "template", "template": search["template"], "args": fixed},
        "fit": {
            **fit,
            "epochs": search["epochs"],
            "batch_size": search["batch_size"],
            "early_stopping": {"monitor": "val_loss", "patience": search["patience"]},
        },
        "search": {
            "algorithm": algorithm,
            "objective": {"metric": "val_accuracy", "direction": "max"},
            "max_trials": search["max_trials"],
            "executions_per_trial": search["executions"],
            "seed": seed,
            "duplicates": duplicates,
            "space": search["space"],
        },
    }


def ours(yard: RunningYard, spec: dict[str, Any], name: str) -> Found:
    """Run one search on a running installation."""
    experiment = yard.ada.post("/experiments", {"project": PROJECT, "name": name, "spec": spec})
    began = time.perf_counter()
    job = int(yard.ada.post(f"/experiments/{experiment['id']}/submit")["job"])
    while yard.job(job)["state"] not in ("completed", "failed", "stopped"):
        time.sleep(0.2)  # as often as a script would poll
    seconds = time.perf_counter() - began
    yard.until_completed(job)
    trials = yard.ada.get(f"/jobs/{job}/trials", limit="200")["items"]
    executions = [execution for trial in trials for execution in trial["executions"]]
    distinct = len({json.dumps(trial["values"], sort_keys=True) for trial in trials})
    epochs = sum(execution["epochs"] for execution in executions)
    return Found(seconds, max(trial["score"] for trial in trials), len(executions), epochs, distinct)


def write_rows(search: dict[str, Any], path: Path) -> None:
    """Write the training and validation rows of our trials for the peers."""
    command = [sys.executable, "-m", "benchmarks.peers.rows", search["dataset"], str(path)]
    subprocess.run(command, check=True)


def compare(options: argparse.Namespace, folder: Path) -> dict[str, list[Found]]:
    """Run the rounds; return the results of each side."""
    search = search_of(options)
    rows, plan = folder / "rows.npz", folder / "search.json"
    write_rows(search, rows)
    plan.write_text(json.dumps(search))
    peers = [Peer(name, folder, options.ray if name == "ray_tune" else None) for name in options.peers]
    if options.try_threads:
        for peer in peers:
            peer.choose(rows, search | {"max_trials": options.try_threads}, seed=1000)
    outcomes: dict[str, list[Found]] = defaultdict(list)
    poll = {"TRAINYARD_NODE_POLL": "2"}  # the default setting
    with (
        open_yard(folder / "cold", TRAINYARD_STANDBY="0", **poll) as cold,
        open_yard(folder / "warm", TRAINYARD_NODE_STANDBY_PATIENCE="1", **poll) as warm,
    ):
        for yard in (cold, warm):
            yard.open()
            yard.until_ready(search["dataset"])
        ours(warm, spec_of(search, options.algorithm, 1000), "fills the compile cache")
        for seed in range(options.first_seed, options.first_seed + options.seeds):
            sides = sides_of_ours(options, search, seed, cold, warm)
            for peer in peers:
                sides[peer.name] = partial(peer.search, rows, plan, seed)
            for name, searched in sides.items():
                outcomes[name].append(searched())
                print(f"seed {seed}: {name} {outcomes[name][-1].seconds:.1f} s", flush=True)
    return outcomes


def search_of(options: argparse.Namespace) -> dict[str, Any]:
    overrides = {"max_trials": options.trials, "epochs": options.epochs}
    settings = {name: value for name, value in overrides.items() if value is not None}
    return {**COMMON, **SEARCHES[options.space], **settings}


def sides_of_ours(
    options: argparse.Namespace, search: dict[str, Any], seed: int, cold: RunningYard, warm: RunningYard
) -> dict[str, Callable[[], Found]]:
    """Return functions that run our searches with this seed."""
    spec, name = spec_of(search, options.algorithm, seed), f"seed {seed}"

    def search_cold() -> Found:
        empty_compile_cache(cold.home)
        return ours(cold, spec, name)

    def search_warm(spec: dict[str, Any]) -> Found:
        standby_is_ready(warm)
        return ours(warm, spec, name)

    sides = {"ours, cold": search_cold, "ours, warm": partial(search_warm, spec)}
    if options.answered:
        answered = spec_of(search, options.algorithm, seed, duplicates="answer")
        sides["ours, warm, repetitions answered"] = partial(search_warm, answered)
    return sides


def report(found: dict[str, list[Found]], peers: list[str]) -> None:
    """Print medians, scores and ratios."""
    heads = ["median, s", "score, mean ± s.e.", "trainings", "epochs", "distinct"]
    print("\n" + " | ".join(["", *heads, *(f"{peer} / it" for peer in peers)]))
    for name, rounds in found.items():
        scores = np.array([one.score for one in rounds])
        error = scores.std(ddof=1) / np.sqrt(len(scores)) if len(scores) > 1 else float("nan")
        seconds, _, trainings, epochs, distinct = (
            statistics.median(column) for column in zip(*rounds, strict=True)
        )
        cells = [name, f"{seconds:.1f}", f"{scores.mean():.4f} ± {error:.4f}"]
        cells += [f"{count:.0f}" for count in (trainings, epochs, distinct)]
        print(" | ".join([*cells, *(f"{_ratio(found[peer], rounds):.1f}" for peer in peers)]))


def _ratio(theirs: list[Found], rounds: list[Found]) -> float:
    return statistics.median(a.seconds / b.seconds for a, b in zip(theirs, rounds, strict=True))


def options_of_call() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="benchmarks.reference_search",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--space", choices=SEARCHES, default="digits")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=0, help="to continue an earlier run")
    parser.add_argument("--algorithm", default="bayesian")
    parser.add_argument("--peers", nargs="*", choices=PEERS, default=["keras_tuner", "optuna"])
    parser.add_argument("--ray", type=Path, metavar="FOLDER", help="where Ray is, for --peers ray_tune")
    parser.add_argument("--try-threads", type=int, metavar="TRIALS", help="of each short search")
    parser.add_argument("--answered", action="store_true", help="add ours with repetitions answered")
    parser.add_argument("--trials", type=int, help="of each search, instead of 20")
    parser.add_argument("--epochs", type=int, help="of each training at most, instead of the space's own")
    return parser.parse_args()


def main() -> None:
    options = options_of_call()
    versions = [f"{name} {version(name)}" for name in INSTALLED]
    if options.ray:
        versions += [
            f"ray {package.version}" for package in distributions(name="ray", path=[str(options.ray)])
        ]
    print(
        f"{', '.join(versions)}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the start",
        flush=True,
    )
    with tempfile.TemporaryDirectory() as folder:
        outcomes = compare(options, Path(folder))
    print(f"{options.space}, {options.seeds} seeds, load {os.getloadavg()[0]:.1f} at the end")
    report(outcomes, options.peers)


if __name__ == "__main__":
    main()
