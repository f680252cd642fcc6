"""Computes the key under which trainings share a compiled step.

The key covers everything that the step is compiled from. Seeds, traced hyperparameters and the number of
epochs are left out, so trials that differ only in these share one program.
"""

import hashlib
import json

from jobs.spec.experiment import ExperimentSpec
from workers.engine.arrays import Array
from workers.engine.compiled.traced_hyperparameters import TRACED_OPTIMIZER_ARGUMENTS
from workers.engine.data.dataset import Dataset
from workers.engine.models.optimizer import is_scheduled

IGNORED_FIT_FIELDS = frozenset(
    {"epochs", "early_stopping", "seed", "shuffle", "steps_per_execution", "class_weights"}
)
"""Fields of `fit` that no compiled step depends on."""
IGNORED_SPEC_FIELDS = frozenset({"version", "search", "after", "resources"})
"""Fields of a spec that no compiled step depends on."""
IGNORED_MESH_FIELDS = frozenset({"simulate", "preallocate", "memory_fraction"})
"""Fields of a mesh that no compiled step depends on."""
TRACED = "traced"
"""Replaces the value of a traced hyperparameter in the key. 0 and None stay: they change the program."""


def program_key(spec: ExperimentSpec, dataset: Dataset, rows: Array) -> str:
    """Return a key that is equal for two trainings exactly if one compiled step serves both.

    Args:
        spec: a trial's, with its hyperparameters filled in.
        dataset: the data set.
        rows: the training rows' numbers, (rows,).
    """
    fit = spec.fit.model_dump(mode="json", exclude=set(IGNORED_FIT_FIELDS))
    # As the optimizer gets them: "0.0" and 0 are the same.
    fit["optimizer_args"] = spec.fit.optimizer_arguments()
    model = spec.model.resolved().model_dump(mode="json")
    if is_scheduled(spec.fit):
        # The curve of the schedule, which may extend over all epochs, is a constant of the program.
        fit["epochs"] = spec.fit.epochs
    else:
        # The learning rate is a variable of the optimizer, so the step does not depend on its value.
        fit["learning_rate"] = fit["schedule"] = None
    for name in TRACED_OPTIMIZER_ARGUMENTS:
        if fit["optimizer_args"].get(name):
            fit["optimizer_args"][name] = TRACED
    for name in spec.model.info.traced:
        if model.get(name):
            model[name] = TRACED
    profile = dataset.profile
    body = {
        "model": [spec.model.info.name, model, spec.model.weights_digest],
        "fit": fit,
        "data": spec.required_data.model_dump(mode="json"),
        "precision": spec.precision.model_dump(mode="json"),
        "dataset": [dataset.digest, profile.kind, profile.task, profile.outputs, profile.input_shape],
        "rows": hashlib.sha256(rows.tobytes()).hexdigest(),
    }
    if spec.mesh is not None:
        # A program runs on the devices for which it was compiled, with the state divided as it was there.
        body["mesh"] = spec.mesh.model_dump(mode="json", exclude=set(IGNORED_MESH_FIELDS))
    return json.dumps(body, sort_keys=True)
