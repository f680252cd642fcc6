"""Runs a search with Optuna's TPE sampler, as its users write it."""

import optuna

from benchmarks.peers.given import arguments, print_result, suggested
from benchmarks.peers.task import Task

given = arguments()
task = Task(given)


def objective(trial):
    found = task.trial(task.values(lambda entry: suggested(trial, entry)))
    trial.set_user_attr("found", found)
    return found["score"]


optuna.logging.set_verbosity(optuna.logging.WARNING)
study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=given.seed))
study.optimize(objective, n_trials=task.search["max_trials"])
found = [trial.user_attrs["found"] for trial in study.trials]
print_result(
    score=study.best_value,
    trainings=sum(each["trainings"] for each in found),
    epochs=sum(each["epochs"] for each in found),
    configurations=[trial.params for trial in study.trials],
)
