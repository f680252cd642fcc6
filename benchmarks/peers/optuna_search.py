"""Runs a search with Optuna's TPE sampler, as its users write it."""

import optuna

from benchmarks.peers.given import arguments, print_result, suggested
from benchmarks.peers.task import Task

options = arguments()
task = Task(options)


def objective(trial):
    outcome = task.trial(task.values(lambda entry: suggested(trial, entry)))
    trial.set_user_attr("outcome", outcome)
    return outcome["score"]


optuna.logging.set_verbosity(optuna.logging.WARNING)
study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=options.seed))
study.optimize(objective, n_trials=task.search["max_trials"])
outcomes = [trial.user_attrs["outcome"] for trial in study.trials]
print_result(
    score=study.best_value,
    trainings=sum(outcome["trainings"] for outcome in outcomes),
    epochs=sum(outcome["epochs"] for outcome in outcomes),
    configurations=[trial.params for trial in study.trials],
)
