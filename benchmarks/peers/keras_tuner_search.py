"""Runs a search with KerasTuner's Bayesian optimization, as its users write it."""

import keras
import keras_tuner

from benchmarks.peers.given import arguments, print_result
from benchmarks.peers.task import Task

options = arguments()
task = Task(options)


class CountEpochs(keras.callbacks.Callback):
    """Counts trainings and epochs over all copies that the tuner makes."""

    trainings = epochs = 0

    def on_train_begin(self, logs=None):
        CountEpochs.trainings += 1

    def on_epoch_end(self, epoch, logs=None):
        CountEpochs.epochs += 1


def draw(hp, entry):
    name, step = entry["name"], entry.get("step")
    if entry["kind"] == "int":
        return hp.Int(name, entry["min"], entry["max"], step=step)
    if entry["kind"] == "float":
        sampling = entry.get("sampling", "linear")
        return hp.Float(name, entry["min"], entry["max"], step=step, sampling=sampling)
    return hp.Choice(name, entry["values"])


tuner = keras_tuner.BayesianOptimization(
    lambda hp: task.build(task.values(lambda entry: draw(hp, entry))),
    objective="val_accuracy",
    max_trials=task.search["max_trials"],
    executions_per_trial=task.search["executions"],
    seed=options.seed + 1,
    directory=options.folder,
    project_name="search",
)
fitting = task.fitting()
tuner.search(**fitting | {"callbacks": [*fitting["callbacks"], CountEpochs()]})
print_result(
    score=tuner.oracle.get_best_trials(1)[0].score,
    trainings=CountEpochs.trainings,
    epochs=CountEpochs.epochs,
    configurations=[trial.hyperparameters.values for trial in tuner.oracle.trials.values()],
)
