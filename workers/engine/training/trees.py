"""Trains trees: prepares a training without gradients, and runs it like any other.

A checkpoint has the progress and the trees' digest, not the trees: scikit-learn's models could only be
stored as pickles. A resumed training grows the same trees again.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from jobs.messages.task import EarlierTraining
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.plan.variables import head_units
from jobs.spec.templates.trees import TreesArgs
from workers.engine.arrays import Array
from workers.engine.data.batches import Batches
from workers.engine.data.dataset import Dataset
from workers.engine.data.rows import Rows
from workers.engine.data.weights import RowWeights
from workers.engine.errors import BadSpec
from workers.engine.models.initial_values import InitialValues
from workers.engine.models.mesh import use_mesh
from workers.engine.models.scaling import measure_scaling
from workers.engine.models.trees.build import build_trees
from workers.engine.models.trees.categories import TargetMeans, flat_blocks, target_means
from workers.engine.models.trees.growing import Grower, TrainingRows, grower
from workers.engine.phases import announced_to
from workers.engine.training import checkpoint
from workers.engine.training.checkpoint import Snapshot
from workers.engine.training.hooks import EpochHook
from workers.engine.training.loops import Loop
from workers.engine.training.plan import EvaluationSet, TrainingPlan
from workers.engine.training.prepare import Prepared, sample_weights
from workers.engine.training.restart import report_restart
from workers.engine.training.training import Training
from workers.engine.training.training_state import TrainingState, restore_progress, snapshot_of
from workers.engine.training.tree_loop import TreeLoop, flat

MEASURED_ROWS = 10_000
"""Training rows, chosen at random, on which the curves of the training part are measured."""


@dataclass(frozen=True, kw_only=True)
class PreparedTrees(Prepared):
    """Trees that have not been grown yet, with their training rows.

    Attributes:
        grower: grows them.
        means: replace indices before the trees.
        weights: for the training rows; None if each counts once.
        loops: the loop that `loop` has made last.
    """

    grower: Grower
    means: TargetMeans
    weights: RowWeights | None
    loops: list[TreeLoop] = field(default_factory=list)

    @property
    def _args(self) -> TreesArgs:
        return cast("TreesArgs", self.spec.model.resolved())

    @property
    def _boosts(self) -> bool:
        return self._args.method == "boosting"

    @property
    def chooses_epoch(self) -> bool:
        """See `Prepared.chooses_epoch`. A forest has all its trees."""
        return self._boosts

    def hook(self, rates: Sequence[float] = ()) -> EpochHook:  # noqa: ARG002
        """See `Prepared.hook`. There are no weights to average, and no optimizer has a learning rate."""
        return EpochHook()

    def loop(self, validation: EvaluationSet | None = None, *, epochs: int) -> Loop:
        """See `Prepared.loop`."""
        loop = TreeLoop(
            self.grower,
            self.means,
            self._measured(),
            validation,
            task=self.dataset.task,
            boosting=self._boosts,
            outputs=head_units(self.dataset.profile),
            epochs=epochs,
        )
        self.loops[:] = [loop]
        return loop

    def _measured(self) -> EvaluationSet:
        """Return the training rows on which the curves are measured."""
        # Rows of weight 0 change no measure.
        rows = (
            np.flatnonzero(self.weights.values)
            if self.weights is not None
            else np.arange(len(self.batches.x))
        )
        if len(rows) > MEASURED_ROWS:
            rows = np.random.default_rng(self.batches.seed).choice(rows, MEASURED_ROWS, replace=False)
        weights = None if self.weights is None else self.weights.select(rows)
        return self._evaluation_set(self.batches.x[rows], self.batches.y[rows], weights)

    def predict(self, x: Rows, batch_size: int) -> Array:
        """See `Prepared.predict`."""
        return self.loops[-1].predict(x, batch_size)

    def training(self, plan: TrainingPlan) -> Training:
        """See `Prepared.training`."""
        return TreeTraining(plan)

    def model_to_save(self, name: str) -> Any:
        """See `Prepared.model_to_save`."""
        use_mesh(None, [], 1)
        profile = self.dataset.profile
        return build_trees(
            self.loops[-1].rounds,
            profile.input_shape,
            profile.task,
            boosting=self._boosts,
            name=name,
            means=self.means,
        )


def prepare_trees(spec: ExperimentSpec, dataset: Dataset, rows: Array, *, seed: int) -> PreparedTrees:
    """Prepare growing trees on `rows`; see `prepare.prepare`.

    Raises:
        BadSpec: the template does not support the data.
    """
    if (refusal := spec.model.refusal(dataset.profile)) is not None:
        raise BadSpec(refusal)
    x, y = dataset.take(rows)
    if not isinstance(x, np.ndarray):
        raise BadSpec(
            f"the template {spec.model.info.name} needs all rows in memory, but this version is so large "
            "that its rows are read while a model trains; choose another template, raise "
            "resources.memory_gib, or upload fewer rows"
        )
    weights = sample_weights(spec, dataset, rows)
    outputs = head_units(dataset.profile)
    # Weights that are all equal would only take time.
    row_weights = None if np.all(weights == weights[0]) else weights
    targets = np.eye(outputs)[y] if dataset.task == "multiclass" else y.reshape(len(y), -1).astype(float)
    rows_in = flat(x)
    means = target_means(flat_blocks(dataset.profile), rows_in, targets, weights)
    encoded = means.encode_training_rows(rows_in, targets, weights, seed)
    training_rows = TrainingRows(encoded, y, row_weights, dataset.task, outputs)
    args = cast("TreesArgs", spec.model.resolved())
    return PreparedTrees(
        model=None,
        # Each epoch is one step on all rows.
        batches=Batches(x=x, y=y, weights=weights, size=len(x), seed=seed, shuffle=False),
        scaling=measure_scaling(x, y, dataset.profile),
        spec=spec,
        dataset=dataset,
        initial=InitialValues([]),
        grower=grower(args, training_rows, seed),
        means=means,
        weights=dataset.weights_of(rows),
    )


class TreeTraining(Training):
    """A training whose epochs add trees."""

    @property
    def _trees(self) -> TreeLoop:
        return cast("TreeLoop", self._loop)

    def _set_up(self) -> Loop:
        # `PreparedTrees.loop` has made it.
        return cast("TreeLoop", self._plan.loop)

    def start(self, resume: Snapshot | None = None) -> None:
        """See `Training.start`. It grows the snapshot's trees again, if they are the same."""
        super().start(resume if resume is not None and self._regrows(resume) else None)

    def _regrows(self, snapshot: Snapshot) -> bool:
        with announced_to(self._plan.report.phase):
            self._trees.regrow(snapshot.state["epoch"])
        if checkpoint.weights_digest(self._current_weights()) == snapshot.weights:
            return True
        # Another version of scikit-learn, for example.
        earlier = EarlierTraining(epoch=snapshot.state["epoch"])
        reason = "the trees differ from those of the checkpoint"
        report_restart(self._plan.report, earlier, (), reason=reason)
        self._trees.begin_again()
        return False

    def _restore(self, snapshot: Snapshot) -> TrainingState:
        return restore_progress(self._plan, snapshot, started=self._state.started)

    def _take_snapshot(self) -> Snapshot:
        arrays: dict[str, list[Array]] = {checkpoint.WEIGHTS: self._current_weights(), "optimizer": []}
        return snapshot_of(self._plan, self._state, self._loop.step_mode, arrays)

    def _current_weights(self) -> list[Array]:
        return self._trees.weights()

    def _copy_weights(self) -> list[Array]:
        # The trees of an epoch are the first of those of later epochs.
        return []

    def _restore_best(self) -> None:
        self._trees.keep(self._best_epoch())

    def _best_epoch(self) -> int:
        # A forest becomes better with each tree. An epoch with fewer trees can only look better by chance:
        # two trees that classify a few validation rows correctly have a loss of 0.
        return super()._best_epoch() if self._trees.boosting else self._state.epoch

    def _optimizer_metrics(self, epoch: int) -> dict[str, float]:  # noqa: ARG002  there is no optimizer
        return {}
