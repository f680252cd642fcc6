"""Runs a search with Ray Tune and Optuna's TPE sampler, as its users write it: one trial at once per core.

The environment variable `TRIALS_AT_ONCE` changes the number; the cores are divided among the trials.
"""

import os

import optuna
import ray
from ray import tune
from ray.tune.search.optuna import OptunaSearch

from benchmarks.peers.given import arguments, print_result, suggested

CORES = os.cpu_count() or 1
AT_ONCE = int(os.environ.get("TRIALS_AT_ONCE", CORES))
options = arguments()
search = options.plan()


def space(trial):
    for entry in search["space"]:
        suggested(trial, entry)
    return search["fixed"]


def train(config):
    from benchmarks.peers.task import (
        task_of,
    )  # imported in the processes that train; this one does not need Keras

    tune.report(task_of(options).trial(config))


optuna.logging.set_verbosity(optuna.logging.WARNING)
ray.init(num_cpus=CORES, include_dashboard=False, logging_level="ERROR", log_to_driver=False)
sampler = optuna.samplers.TPESampler(seed=options.seed)
tuner = tune.Tuner(
    tune.with_resources(train, {"cpu": CORES / AT_ONCE}),
    tune_config=tune.TuneConfig(
        search_alg=OptunaSearch(space, metric="score", mode="max", sampler=sampler),
        num_samples=search["max_trials"],
        max_concurrent_trials=AT_ONCE,
        reuse_actors=True,
    ),
    run_config=tune.RunConfig(storage_path=options.folder, verbose=0),
)
results = tuner.fit()
ray.shutdown()
assert not results.errors, results.errors[0]
outcomes = [result.metrics for result in results]
print_result(
    score=max(outcome["score"] for outcome in outcomes),
    trainings=sum(outcome["trainings"] for outcome in outcomes),
    epochs=sum(outcome["epochs"] for outcome in outcomes),
    configurations=[result.config for result in results],
)
