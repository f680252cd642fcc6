"""Runs the epochs for trees: each adds one round of trees, and measures all rounds so far."""

import hashlib
import time
from collections.abc import Sequence

import numpy as np

from workers.engine.arrays import Array
from workers.engine.data.rows import Rows
from workers.engine.killpoint import kill_point
from workers.engine.models.losses import WHILE_TRAINING
from workers.engine.models.trees.arrays import Tree
from workers.engine.models.trees.build import check_size
from workers.engine.models.trees.categories import TargetMeans
from workers.engine.models.trees.growing import Grower
from workers.engine.phases import announce
from workers.engine.training.loops import BatchCallback
from workers.engine.training.plan import EvaluationSet

GROWING_SECONDS = 2.0
"""About the longest time of growing rounds in advance, after which requests are served.

scikit-learn prepares the rows again in each call, so one call for each round would take several times as
long.
"""


class RunningTotal:
    """The predictions that all rounds so far make for some rows, to which each round is added once.

    Args:
        x: rows, (rows, …).
        means: replace indices.
        outputs: the model's output count.
    """

    def __init__(self, x: Rows, means: TargetMeans, outputs: int) -> None:
        self.x = x
        self._encoded = means.encode(flat(x[:]))
        self._total = np.zeros((len(x), outputs))
        self._rounds = 0

    def add(self, trees: Sequence[Tree]) -> None:
        """Add the next round's trees."""
        self._total += np.concatenate([tree.predict(self._encoded) for tree in trees], axis=1)
        self._rounds += 1

    def predictions(self, task: str, *, boosting: bool) -> Array:
        """Return the predictions, (rows, outputs) float32."""
        total = _linked(self._total, task) if boosting else self._total / self._rounds
        return total.astype(np.float32)


class TreeLoop:
    """Adds one round of trees in each epoch. It is the `Loop` for a training without gradients.

    Args:
        grower: grows the trees.
        means: replace indices before the trees.
        measured: training rows on which loss and metrics are measured.
        validation: rows to predict after each epoch; None if all rows are used for training.
        task: the prediction task.
        boosting: whether rounds are summed and linked to predictions; otherwise they are averaged.
        outputs: the model's output count.
        epochs: epochs to train.
    """

    step_mode = "trees"
    data_wait: float | None = None

    def __init__(
        self,
        grower: Grower,
        means: TargetMeans,
        measured: EvaluationSet,
        validation: EvaluationSet | None,
        *,
        task: str,
        boosting: bool,
        outputs: int,
        epochs: int,
    ) -> None:
        self._grower, self._means = grower, means
        self._measured = measured
        self._task, self.boosting, self._outputs, self._epochs = task, boosting, outputs, epochs
        self._validation_x = None if validation is None else validation.x
        self._metrics = tuple(name for name in measured.metrics if name in WHILE_TRAINING)
        self._rounds: list[Sequence[Tree]] = []
        self._nodes = 0
        self.begin_again()
        self._ahead = 1
        self._seconds = GROWING_SECONDS  # until it has been measured, growing may take long

    def begin_again(self) -> None:
        """Begin before the first epoch. Trees that were grown are kept."""
        self._done = 0
        self._training = RunningTotal(self._measured.x, self._means, self._outputs)
        x = self._validation_x
        self._validation = None if x is None else RunningTotal(x, self._means, self._outputs)

    @property
    def rounds(self) -> Sequence[Sequence[Tree]]:
        """The trees from the epochs that are done."""
        return self._rounds[: self._done]

    def epoch(
        self,
        epoch: int,
        first: int,  # noqa: ARG002
        metrics: list[Array],  # noqa: ARG002
        after_batch: BatchCallback,  # noqa: ARG002
    ) -> dict[str, float]:
        """See `Loop.epoch`. An epoch is not divided into batches."""
        self._advance(epoch)
        measured = self._measured
        predictions = self._training.predictions(self._task, boosting=self.boosting)
        kill_point("batch")
        return measured.measure(self._metrics, predictions)

    def regrow(self, epochs: int) -> None:
        """Repeat this many epochs without measuring them."""
        self._advance(epochs)

    def _advance(self, epoch: int) -> None:
        while self._done < epoch:
            if self._done == len(self._rounds):
                self._grow(max(epoch, self._epochs))
            trees = self._rounds[self._done]
            self._training.add(trees)
            if self._validation is not None:
                self._validation.add(trees)
            self._done += 1

    def _grow(self, most: int) -> None:
        """Grow the next rounds, up to `most`: twice as many as the last time, unless that takes too long."""
        if self._seconds >= GROWING_SECONDS / 2:
            announce("working")
        before, began = len(self._rounds), time.monotonic()
        after = min(before + self._ahead, most)
        self._grower.grow(after)
        self._rounds += [self._grower.trees(number) for number in range(before, after)]
        self._seconds = time.monotonic() - began
        self._nodes += sum(len(tree.feature) for trees in self._rounds[before:] for tree in trees)
        check_size(self._nodes)
        if self._seconds < GROWING_SECONDS / 2:
            self._ahead *= 2
        elif self._seconds > GROWING_SECONDS:
            self._ahead = max(self._ahead // 2, 1)

    def keep(self, epoch: int) -> None:
        """Drop the rounds after the given epoch."""
        self._rounds = self._rounds[:epoch]
        self._done = epoch
        # They contain the dropped rounds.
        self._validation = None

    def predict(self, x: Rows, batch_size: int) -> Array:  # noqa: ARG002
        """See `Loop.predict`."""
        total = self._validation
        if total is None or x is not total.x:
            total = RunningTotal(x, self._means, self._outputs)
            for trees in self.rounds:
                total.add(trees)
        return total.predictions(self._task, boosting=self.boosting)

    def weights(self) -> list[Array]:
        """Return the trees' SHA-256, (32,) uint8. Trees are grown again instead of being stored."""
        digest = hashlib.sha256()
        for trees in self.rounds:
            for tree in trees:
                for part in (tree.feature, tree.threshold, tree.left, tree.right, tree.value):
                    digest.update(np.ascontiguousarray(part).tobytes())
        return [np.frombuffer(digest.digest(), np.uint8)]

    def sync(self) -> None:
        """See `Loop.sync`. There are no variables."""

    def load(self) -> None:
        """See `Loop.load`. There are no variables."""

    def close(self) -> None:
        """See `Loop.close`. All rows are in memory."""

    def keep_step_mode(self, mode: str) -> None:
        """See `Loop.keep_step_mode`. There is only one mode."""


def flat(x: Array) -> Array:
    """Return rows as the trees take them, (rows, features) float32."""
    return np.ascontiguousarray(x.reshape(len(x), -1), np.float32)


def _linked(raw: Array, task: str) -> Array:
    """Return the predictions for boosting sums, (rows, outputs)."""
    if task == "regression":
        return raw
    if task == "multiclass":
        powers = np.exp(raw - raw.max(axis=1, keepdims=True))
        return np.asarray(powers / powers.sum(axis=1, keepdims=True))
    return np.exp(-np.logaddexp(0.0, -raw))
