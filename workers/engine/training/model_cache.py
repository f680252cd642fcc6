"""Caches built models for later trainings that use the same compiled program.

A search trains the same few shapes many times, with different seeds, learning rates and dropout rates. A
cached model is reset: its variables get the values that a new model would start from, its traced
hyperparameters and learning rate the values in the spec. So each shape is built, traced and compiled once in
a runner's lifetime.
"""

import hashlib
import json
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, Self

import keras

from jobs.messages.task import DatasetFile
from jobs.spec.experiment import ExperimentSpec
from workers.engine.arrays import Array
from workers.engine.compiled.cache_key import program_key
from workers.engine.compiled.program import Program
from workers.engine.compiled.traced_hyperparameters import TRACED_OPTIMIZER_ARGUMENTS
from workers.engine.data.dataset import Dataset, load_dataset
from workers.engine.models.base_models import features_of
from workers.engine.models.initial_values import InitialValues
from workers.engine.models.optimizer import make_optimizer, set_rate_factor, unwrap_optimizer
from workers.engine.models.scaling import Scaling
from workers.engine.models.templates.site import set_traced
from workers.engine.models.variables import assign, values
from workers.engine.models.width_padding import widened, widths_of
from workers.engine.training.mesh_setup import set_mesh
from workers.engine.training.prepare import Prepared, batches_of, prepare

MAX_MODELS = 16
MAX_BYTES = 256 << 20
"""Limit for the variables of all cached models."""


@dataclass
class _CachedModel:
    """A built model with the initial values for the variables that do not depend on the seed.

    It has no rows: a fold's rows would stay in memory while another fold is used.

    Attributes:
        model, scaling, initial, program: see `Prepared`.
        fixed: initial values for `initial.fixed`.
        optimizer: initial values for the optimizer's variables.
    """

    model: Any
    scaling: Scaling
    initial: InitialValues
    program: Program | None
    fixed: list[Array]
    optimizer: list[Array]

    @classmethod
    def from_prepared(cls, prepared: Prepared) -> Self:
        return cls(
            model=prepared.model,
            scaling=prepared.scaling,
            initial=prepared.initial,
            program=prepared.program,
            fixed=values(prepared.initial.fixed),
            optimizer=values(prepared.model.optimizer.variables),
        )

    @property
    def bytes(self) -> int:
        variables = [*self.model.variables, *self.model.optimizer.variables]
        return sum(int(variable.value.nbytes) for variable in variables)


class ModelCache:
    """Keeps at most `MAX_MODELS` models with `MAX_BYTES` of variables; removes the least recently used first.

    It also keeps the data set loaded last, so that all models share its rows.
    """

    def __init__(self) -> None:
        self._dataset: tuple[str, Dataset] | None = None
        self._models: OrderedDict[str, _CachedModel] = OrderedDict()

    def load(self, file: DatasetFile, spec: ExperimentSpec, in_memory_bytes: int | None = None) -> Dataset:
        """Return an experiment's data set; the same object if it was the last one loaded.

        Args:
            file, in_memory_bytes: see `load_dataset`.
            spec: the experiment.

        Raises:
            BadData, BadSpec: see `load_dataset`.
        """
        # Versions of the same file may differ in the roles and types of their columns alone.
        described = hashlib.sha256(json.dumps(file.profile, sort_keys=True).encode()).hexdigest()
        data = spec.required_data
        selected = f"{data.model_dump_json()} {spec.texts}"
        # A version that is trained further brings the pipeline of its columns.
        start = spec.model.weights_digest
        key = f"{file.digest} {selected} {file.path} {described} {in_memory_bytes} {start}"
        if self._dataset is None or self._dataset[0] != key:
            # Frees the old data set before the new one is read: two may not fit into memory.
            self._dataset = None
            self._models.clear()
            features = features_of(spec.model)
            self._dataset = (key, load_dataset(file, data, spec.texts, in_memory_bytes, features))
        return self._dataset[1]

    def prepare(
        self, spec: ExperimentSpec, dataset: Dataset, rows: Array, *, name: str, seed: int
    ) -> Prepared:
        """Prepare a training like `prepare.prepare`, with a cached model if one has the same program.

        Raises:
            BadLayout, BadSpec: see `prepare.prepare`.
        """
        # Other preparations have their own caches.
        if spec.model.info.preparation:
            return prepare(spec, dataset, rows, name=name, seed=seed)
        built = widened(spec, dataset.profile, len(rows))
        key = program_key(built, dataset, rows)
        if key not in self._models:
            prepared = prepare(built, dataset, rows, name=name, seed=seed)
            # Without all initializers the model could not be reset for another seed.
            if not prepared.initial.complete:
                return prepared
            self._models[key] = _CachedModel.from_prepared(prepared)
            # The new model is last. It is kept even if it alone exceeds the limit.
            while len(self._models) > 1 and (
                len(self._models) > MAX_MODELS
                or sum(model.bytes for model in self._models.values()) > MAX_BYTES
            ):
                self._models.popitem(last=False)
        self._models.move_to_end(key)
        return _reset(self._models[key], spec, dataset, rows, seed)


def _reset(cached: _CachedModel, spec: ExperimentSpec, dataset: Dataset, rows: Array, seed: int) -> Prepared:
    """Return a cached model in the same state as a new one for `spec` and `seed`."""
    model = cached.model
    # Another model may have been built on one device since, and functions are traced when they are needed.
    set_mesh(spec)
    batches = batches_of(spec, dataset, rows, seed)
    widths = widths_of(spec, dataset.profile)
    assign(cached.initial.fixed, cached.fixed)
    cached.initial.redraw(seed, widths)
    set_traced(model, spec.model.info, spec.model.resolved())
    optimizer = model.optimizer
    assign(optimizer.variables, cached.optimizer)
    optimizer = unwrap_optimizer(optimizer)
    new_optimizer = make_optimizer(spec.fit, batches.steps)
    # With a schedule the rate is computed from the steps instead, and is part of the program.
    if isinstance(optimizer.learning_rate, keras.Variable):
        optimizer.learning_rate.assign(new_optimizer.learning_rate)
    set_rate_factor(optimizer, spec.model.resolved())
    for name in TRACED_OPTIMIZER_ARGUMENTS:
        if hasattr(new_optimizer, name):
            setattr(optimizer, name, getattr(new_optimizer, name))
    return Prepared(model, batches, cached.scaling, spec, dataset, cached.initial, cached.program, widths)
