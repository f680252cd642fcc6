"""Evaluates models that user code compiles, as Keras' `evaluate` does, and runs their epochs."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from workers.engine.arrays import Array
from workers.engine.compiled.code_program import CodeProgram
from workers.engine.compiled.vmapped import unstacked
from workers.engine.data.rows import Rows
from workers.engine.errors import CodeFitFailure
from workers.engine.evaluation.metric_results import numbers_of
from workers.engine.evaluation.weighting import Weights
from workers.engine.models.code_models import code_build
from workers.engine.models.code_models.code_build import CodeBuild
from workers.engine.models.own_code.failures import calling
from workers.engine.training.loops import BatchCallback, Loop
from workers.engine.training.plan import EvaluationSet
from workers.engine.training.program_loop import ProgramLoop


class CodeLoop(ProgramLoop):
    """Runs the epochs of a model that user code compiles; see `ProgramLoop`."""

    program: CodeProgram

    def epoch(
        self, epoch: int, first: int, metrics: list[Array], after_batch: BatchCallback
    ) -> dict[str, float]:
        """See `Loop.epoch`.

        Raises:
            CodeFitFailure: the code fails in a training step.
        """
        with calling(CodeFitFailure, "a training step"):
            return super().epoch(epoch, first, metrics, after_batch)

    def predict(self, x: Rows, batch_size: int) -> Array:
        """See `Loop.predict`."""
        return self._predict(x, batch_size)

    def validate(self, rows: Sequence[Any], rows_at_once: int) -> dict[str, float]:
        """Return loss and metrics by name for these rows with the newest weights; see `CodeProgram.test`."""
        if self._validated is not None:
            return numbers_of(self._validated)
        return self.program.test(unstacked(self._newest), *rows, rows_at_once=rows_at_once)


@dataclass(frozen=True)
class CodeEvaluationSet(EvaluationSet):
    """Rows on which a compiled model's loss and metrics are computed as by Keras' `evaluate`.

    They are computed batch by batch, and the loss has the model's penalties. `batch_size` is how many rows
    are predicted at once.
    """

    draws: ClassVar[int] = 200
    build: CodeBuild | None = None
    program: CodeProgram | None = None

    @property
    def rows(self) -> tuple[Any, ...]:
        """The features, the targets as the loss takes them, and the weights if there are some."""
        weights = () if self.weights is None else (self.weights.astype("float32"),)
        return self.x, self._build.targets(self.y), *weights

    @property
    def _build(self) -> CodeBuild:
        if self.build is None:
            raise TypeError("the evaluation set has no model")
        return self.build

    def measured_by(self, loop: Loop) -> dict[str, float]:
        """See `EvaluationSet.measured_by`."""
        if not isinstance(loop, CodeLoop):
            raise TypeError("the loop of another model")
        with calling(CodeFitFailure, "computing the loss and the metrics"):
            return loop.validate(self.rows, self.batch_size)

    def computes(self, name: str) -> bool:
        """See `EvaluationSet.computes`. Predictions do not show the penalties in a loss."""
        model = self._build.model
        return name in metric_names(self._build) and (name != "loss" or not model.losses)

    def score(self, name: str, y: Array, p: Array, weights: Weights) -> float:
        """See `EvaluationSet.score`."""
        if self.program is None:
            raise TypeError("the evaluation set has no program")
        build = self._build
        rows = code_build.unfinished_rows(p, build.output, build.shape).astype("float32")
        relative_weights = None
        if weights is not None:
            # A drawn sample may have rows without weight alone, for which no value is defined.
            if not weights.any():
                return math.nan
            # Keras divides a loss by the number of rows, so their mean has to be 1.
            relative_weights = (weights / weights.mean()).astype("float32")
        with calling(CodeFitFailure, "computing the loss and the metrics"):
            return self.program.score(build.targets(y), rows, relative_weights)[name]


def metric_names(build: CodeBuild) -> tuple[str, ...]:
    """Return the names of the loss and of the metrics in a compiled model whose metrics have been built."""
    return tuple(numbers_of(build.model.get_metrics_result()))
