"""What is asked of, and answered by, the short-lived process that analyses a search."""

from pydantic import Field

from jobs.contracts.base import Frozen

FEWEST_TRIALS = 10
"""Below that a forest has nothing to split: whatever it said would be chance."""


class ImportanceRequest(Frozen):
    """Asks how much each hyperparameter matters.

    Attributes:
        names: the hyperparameters that vary.
        columns: of each of them its value in every trial, between 0 and 1 in the scale it is searched in;
            None where it was inactive.
        scores: the objective's value of every trial.
    """

    names: tuple[str, ...] = Field(min_length=1)
    columns: tuple[tuple[float | None, ...], ...]
    scores: tuple[float, ...] = Field(min_length=FEWEST_TRIALS)
    seed: int = 0


class Importance(Frozen):
    """How much one hyperparameter matters, as a share of 1.

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
    """What a forest found. `explained` is its R² on trials that each tree has not seen (out of bag)."""

    used: int
    trees: int
    explained: float
    importances: tuple[Importance, ...]
