"""What two trainings must share to share a compiled step: all but seeds, dials and durations."""

import hashlib
import json

from jobs.contracts.experiment import ExperimentSpec
from workers.engine.compiled.traced_hyperparameters import OF_OPTIMIZERS
from workers.engine.data.dataset import Dataset
from workers.engine.data.table import Array
from workers.engine.models.optimizer import is_scheduled

OF_TRAININGS = frozenset(
    {"epochs", "early_stopping", "seed", "shuffle", "steps_per_execution", "class_weights"}
)
"""Fit fields that no compiled step depends on."""
OF_JOBS = frozenset({"version", "search", "mesh", "after", "resources"})
"""Parts of a spec that none depends on. On a mesh there is no step of ours."""


def program_key(spec: ExperimentSpec, dataset: Dataset, rows: Array) -> str:
    """Return the same for two trainings exactly if one compiled step serves both."""
    fit = spec.fit.model_dump(mode="json", exclude=set(OF_TRAININGS))
    fit["optimizer_args"] = spec.fit.optimizer_arguments()  # "0.0" and 0 are the same
    model = spec.model.resolved().model_dump(mode="json")
    if is_scheduled(spec.fit):
        fit["epochs"] = spec.fit.epochs  # its curve is a constant of the program
    else:
        fit["learning_rate"] = fit["schedule"] = (
            None  # a variable of the optimizer, set between epochs if at all
        )
    for name in OF_OPTIMIZERS:
        if fit["optimizer_args"].get(name):
            fit["optimizer_args"][name] = "dial"
    for name in spec.model.info.traced:
        if model.get(name):
            model[name] = "dial"
    profile = dataset.profile
    body = {
        "model": [spec.model.template, model],
        "fit": fit,
        "data": spec.data.model_dump(mode="json"),
        "precision": spec.precision.model_dump(mode="json"),
        "dataset": [dataset.digest, profile.kind, profile.task, profile.outputs, profile.input_shape],
        "rows": hashlib.sha256(rows.tobytes()).hexdigest(),
    }
    return json.dumps(body, sort_keys=True)
