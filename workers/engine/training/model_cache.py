"""The models that a runner has built, kept for later trainings that need the same program.

A search trains the same few shapes again and again, with other seeds, learning rates and dropout rates. A
kept model is started anew: variables as a fresh build would have them, dials and learning rate as the
spec says. So a shape is built, traced and compiled once in a runner's life.
"""

from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import Any, Self

import keras

from jobs.contracts.data import DataSpec
from jobs.contracts.experiment import ExperimentSpec
from jobs.contracts.task_parts import DatasetFile
from workers.engine.compiled.cache_key import program_key
from workers.engine.compiled.traced_hyperparameters import TRACED_OPTIMIZER_ARGUMENTS
from workers.engine.data.dataset import Dataset, load_dataset
from workers.engine.data.table import Array
from workers.engine.models.optimizer import make_optimizer
from workers.engine.models.templates.site import set_traced
from workers.engine.models.variables import assign, values
from workers.engine.models.width_padding import widened, widths_of
from workers.engine.training.prepare import Prepared, prepare, sample_weights

MOST = 16
MOST_BYTES = 256 << 20


@dataclass
class _Kept:
    """A built model with the values of those variables that start alike for every seed."""

    prepared: Prepared
    fixed: list[Array]
    optimizer: list[Array]

    @classmethod
    def of(cls, prepared: Prepared) -> Self:
        return cls(prepared, values(prepared.initial.fixed), values(prepared.model.optimizer.variables))

    @property
    def bytes(self) -> int:
        variables = [*self.prepared.model.variables, *self.prepared.model.optimizer.variables]
        return sum(int(variable.value.nbytes) for variable in variables)


class ModelCache:
    """At most `MOST` models and `MOST_BYTES` of their variables; the longest unused goes first.

    The data set that was asked for last is kept too, so that all models share its rows.
    """

    def __init__(self) -> None:
        self._dataset: tuple[str, Dataset] | None = None
        self._kept: OrderedDict[str, _Kept] = OrderedDict()

    def load(self, file: DatasetFile, spec: DataSpec) -> Dataset:
        """Return a data set, split as `spec` says; the same one as before if it is the same.

        Raises:
            BadData, BadSpec: see `load_dataset`.
        """
        key = f"{file.digest} {spec.model_dump_json()} {file.path}"
        if self._dataset is None or self._dataset[0] != key:
            self._dataset = None  # never two of them in memory
            self._kept.clear()
            self._dataset = (key, load_dataset(file, spec))
        return self._dataset[1]

    def prepare(
        self, spec: ExperimentSpec, dataset: Dataset, rows: Array, *, name: str, seed: int
    ) -> Prepared:
        """Do what `setup.prepare` does, with a model from the stock if there is one that fits.

        Raises:
            BadLayout, BadSpec: see `setup.prepare`.
        """
        if spec.mesh is not None:
            return prepare(spec, dataset, rows, name=name, seed=seed)
        built = widened(spec, dataset.profile, len(rows))
        key = program_key(built, dataset, rows)
        if key not in self._kept:
            prepared = prepare(built, dataset, rows, name=name, seed=seed)
            if not prepared.initial.complete:
                return prepared
            self._kept[key] = _Kept.of(prepared)
            self._drop_oldest()
        self._kept.move_to_end(key)
        return _anew(self._kept[key], spec, dataset, rows, seed)

    def _drop_oldest(self) -> None:
        while len(self._kept) > 1 and (
            len(self._kept) > MOST or sum(kept.bytes for kept in self._kept.values()) > MOST_BYTES
        ):
            self._kept.popitem(last=False)


def _anew(kept: _Kept, spec: ExperimentSpec, dataset: Dataset, rows: Array, seed: int) -> Prepared:
    """Return a kept model as if it had just been built for `spec` and `seed`."""
    prepared = kept.prepared
    model = prepared.model
    widths = widths_of(spec, dataset.profile)
    assign(prepared.initial.fixed, kept.fixed)
    prepared.initial.redraw(seed, widths)
    set_traced(model, spec.model.info, spec.model.resolved())
    optimizer = model.optimizer
    assign(optimizer.variables, kept.optimizer)
    _turn(getattr(optimizer, "inner_optimizer", optimizer), make_optimizer(spec.fit, prepared.batches.steps))
    batches = replace(
        prepared.batches,
        seed=seed,
        shuffle=spec.fit.shuffle,
        weights=sample_weights(spec, dataset, dataset.y[rows]),
    )
    return replace(prepared, batches=batches, spec=spec, widths=widths)


def _turn(optimizer: Any, wanted: Any) -> None:
    if isinstance(optimizer.learning_rate, keras.Variable):
        optimizer.learning_rate.assign(wanted.learning_rate)
    for name in TRACED_OPTIMIZER_ARGUMENTS:
        if hasattr(wanted, name):
            setattr(optimizer, name, getattr(wanted, name))
