"""How a configuration is judged: on the split's validation part, or by cross-validation."""

from typing import Annotated, Literal, NamedTuple

from pydantic import Field

from jobs.contracts.base import Frozen


class Turn(NamedTuple):
    """Which part of the evaluation one execution is: fold `fold` (from 1) of repeat `repeat` (from 1)."""

    repeat: int
    fold: int | None


class Holdout(Frozen):
    """Each execution trains on the training part and is measured on the validation part."""

    kind: Literal["holdout"] = "holdout"

    def trainings(self) -> int:
        """Return how many trainings one round takes."""
        return 1

    def turn(self, execution: int) -> Turn:
        """Return what execution number `execution` (from 1) does."""
        return Turn(execution, None)


class KFold(Frozen):
    """Training and validation rows together are cut into `folds`; each is held out once, the rest trains.

    Test rows take no part. Another repeat cuts anew; one repeat cuts alike for every trial.
    """

    kind: Literal["k_fold"]
    folds: int = Field(default=5, ge=2, le=100)

    def trainings(self) -> int:
        """Return how many trainings one round takes."""
        return self.folds

    def turn(self, execution: int) -> Turn:
        """Return what execution number `execution` (from 1) does."""
        repeat, fold = divmod(execution - 1, self.folds)
        return Turn(repeat + 1, fold + 1)


Evaluation = Annotated[Holdout | KFold, Field(discriminator="kind")]
