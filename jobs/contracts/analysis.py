"""Request and answer of the short-lived process that analyses a search."""

from pydantic import Field

from jobs.contracts.base import Frozen

FEWEST_TRIALS = 10
"""With fewer trials a forest has too little to split, and its answer would be chance."""


class ImportanceRequest(Frozen):
    """A request for the importance of each hyperparameter.

    Attributes:
        names: the hyperparameters that vary.
        columns: for each name, its value in every trial, mapped to [0, 1] in its own scale; None where it
            was inactive.
        scores: the objective's value of every trial.
    """

    names: tuple[str, ...] = Field(min_length=1)
    columns: tuple[tuple[float | None, ...], ...]
    scores: tuple[float, ...] = Field(min_length=FEWEST_TRIALS)
    seed: int = 0


class Importance(Frozen):
    """The importance of one hyperparameter, as shares of 1.

    Attributes:
        alone: the share of the score's variance that it explains alone (functional ANOVA).
        spread: the standard deviation of `alone` over the trees.
        impurity: its share of the decrease of impurity, interactions included.
    """

    name: str
    alone: float
    spread: float
    impurity: float


class ImportanceAnswer(Frozen):
    """The importances. `explained` is the forest's out-of-bag R²."""

    used: int
    trees: int
    explained: float
    importances: tuple[Importance, ...]
