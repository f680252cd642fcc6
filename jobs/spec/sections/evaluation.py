"""Declares how a configuration is evaluated: on the validation rows, or by cross-validation."""

from typing import Annotated, Literal, NamedTuple

from pydantic import Field

from jobs.spec.base import Frozen


class Turn(NamedTuple):
    """The part of the evaluation that one execution does: fold `fold` in repeat `repeat`, both from 1."""

    repeat: int
    fold: int | None


class Holdout(Frozen):
    """Each execution trains on the training rows and is evaluated on the validation rows."""

    kind: Literal["holdout"] = "holdout"

    def trainings(self) -> int:
        """Return the number of trainings in one repeat."""
        return 1

    def turn(self, execution: int) -> Turn:
        """Return the part of execution number `execution` (from 1)."""
        return Turn(execution, None)


class KFold(Frozen):
    """Training and validation rows are divided into `folds`; each fold is held out once.

    Test rows are not used. Each repeat divides the rows differently, in the same way for every trial.
    """

    kind: Literal["k_fold"]
    folds: int = Field(default=5, ge=2, le=100)

    def trainings(self) -> int:
        """Return the number of trainings in one repeat."""
        return self.folds

    def turn(self, execution: int) -> Turn:
        """Return the part of execution number `execution` (from 1)."""
        repeat, fold = divmod(execution - 1, self.folds)
        return Turn(repeat + 1, fold + 1)


Evaluation = Annotated[Holdout | KFold, Field(discriminator="kind")]
