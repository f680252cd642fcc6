"""A search as an Optuna user writes it, with its TPE sampler."""

import optuna

from benchmarks.peers.given import arguments, say, suggested
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
say(
    score=study.best_value,
    trainings=sum(each["trainings"] for each in found),
    epochs=sum(each["epochs"] for each in found),
    configurations=[trial.params for trial in study.trials],
)
