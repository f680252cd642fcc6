"""Begins an experiment with the search that code describes by a tuner of KerasTuner."""

from typing import Any

from pydantic import ValidationError

from jobs.messages.code import CodeSearch
from jobs.spec.sections import measures
from jobs.spec.sections.fit import KERAS_BATCH_SIZE
from jobs.spec.sections.rungs import RungOptions, brackets
from jobs.spec.sections.search import MOST_TRIALS

ALGORITHMS = {
    "RandomSearch": "random",
    "BayesianOptimization": "keras_tuner_bayesian",
    "Hyperband": "hyperband",
    "GridSearch": "grid",
}
TRIALS = 10
"""KerasTuner's number of trials, if none is given."""
ALL_TRIALS = 1000
"""A grid's number of trials, if none is given: it ends with its last configuration."""
MAX_EPOCHS, FACTOR = 100, 3
"""Hyperband's in KerasTuner, if they are not given."""
Json = dict[str, Any]


def with_search(spec: Json, search: CodeSearch) -> Json:
    """Return a spec with the algorithm, the objective and the settings of a described search.

    Of a training, the spec has no search, and no steps that need one.
    """
    metric = search.metric or "val_loss"
    direction = search.direction or measures.direction(metric)
    body: Json = {
        **spec["search"],
        "algorithm": ALGORITHMS.get(search.tuner, "random"),
        "objective": {"metric": metric, "direction": direction},
        "max_trials": search.max_trials or _trials_of(search),
        "executions_per_trial": search.executions or 1,
    }
    if search.seed is not None:
        body["seed"] = search.seed
    if search.max_failures is not None:
        body["max_consecutive_failures"] = search.max_failures
    if search.space:
        body["space"] = search.space
    epochs = search.epochs or 1
    if search.tuner == "Hyperband":
        # It chooses the epochs of each trial; those of `search` have no effect.
        epochs = search.max_epochs or MAX_EPOCHS
        body["options"] = {"factor": search.factor or FACTOR, "iterations": search.iterations or 1}
    fit: Json = {"epochs": epochs, "batch_size": search.batch_size or KERAS_BATCH_SIZE}
    if (stopping := search.early_stopping) is not None:
        fit["early_stopping"] = stopping.model_dump(mode="json", exclude_none=True)
    if search.shuffle is not None:
        fit["shuffle"] = search.shuffle
    changed = {**spec, "search": body, "fit": fit}
    if search.hyperparameters:
        changed["model"] = {**spec["model"], "hyperparameters": search.hyperparameters}
    if not search.tuner:
        changed = {name: part for name, part in changed.items() if name not in ("search", "after")}
    if search.validation_split:
        split = {**spec["data"]["split"], "validation": search.validation_split}
        changed["data"] = {**spec["data"], "split": split}
    return changed


def _trials_of(search: CodeSearch) -> int:
    """Return the number of trials that a tuner does without a maximum; Hyperband takes none."""
    if search.tuner == "GridSearch":
        return ALL_TRIALS
    if search.tuner != "Hyperband":
        return TRIALS
    try:
        options = RungOptions(factor=search.factor or FACTOR, iterations=search.iterations or 1)
    except ValidationError:
        # The form names the value that no search may have.
        return TRIALS
    planned = brackets(options, search.max_epochs or MAX_EPOCHS, MOST_TRIALS)
    return sum(bracket.sizes[0] for bracket in planned)
