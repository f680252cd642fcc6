"""Declares the request to the short-lived process that analyses a search, and its answer."""

from typing import Literal

from pydantic import Field

from jobs.spec.base import Frozen
from jobs.spec.space.hyperparameters import Value

FEWEST_TRIALS = 10
"""With fewer trials, too few count as best to differ from the others by more than chance."""

RARE = 0.05
"""A difference that chance gives in at most this share of cases counts as one."""


class FurtherObjective(Frozen):
    """An objective beside the first, with its value in every trial."""

    scores: tuple[float, ...]
    direction: Literal["min", "max"]


class ImportanceRequest(Frozen):
    """A request for each hyperparameter's importance.

    Attributes:
        names: the hyperparameters that vary.
        columns: for each name, its value in every trial, mapped to [0, 1] in its own scale; None where it was
            inactive. The i-th value among k choices is (i + 0.5) / k.
        scores: every trial's value for the first objective.
        direction: whether a greater or a smaller score is better.
        further: the other objectives, if there are several.
        choices: the values of those that are not numeric, by name.
    """

    names: tuple[str, ...] = Field(min_length=1)
    columns: tuple[tuple[float | None, ...], ...]
    scores: tuple[float, ...] = Field(min_length=FEWEST_TRIALS)
    direction: Literal["min", "max"] = "max"
    further: tuple[FurtherObjective, ...] = ()
    choices: dict[str, tuple[Value, ...]] = Field(default_factory=dict)
    seed: int = 0


class Influence(Frozen):
    """The tendency of the score over the values of one hyperparameter, while all others vary too.

    Attributes:
        verdict: `higher` or `lower`: such numbers tend to score better; `choice`: some of the choices do;
            `unclear`: the trials show no tendency.
        correlation: of a number, Spearman's rank correlation with how good the score is; None if undefined.
        low: lower end of its 95 % interval.
        high: upper end of its 95 % interval.
        best: the choices that tend to score best; empty unless the verdict is `choice`.
        trials: how many trials it is based on.
    """

    verdict: Literal["higher", "lower", "choice", "unclear"]
    correlation: float | None = None
    low: float | None = None
    high: float | None = None
    best: tuple[Value, ...] = ()
    trials: int


class Importance(Frozen):
    """The importance of one hyperparameter.

    Attributes:
        alone: how much its values in the best trials differ from those in all trials, as a share of the sum
            over all hyperparameters (PED-ANOVA). It includes no interactions.
        chance: how likely at least such a difference is if the score does not depend on the hyperparameter,
            from 0 to 1 (permutation test).
        influence: which values tend to score better, by the first objective.
    """

    name: str
    alone: float
    chance: float
    influence: Influence

    @property
    def is_beyond_chance(self) -> bool:
        """Whether chance alone would rarely give such a difference."""
        return self.chance <= RARE


class ImportanceAnswer(Frozen):
    """The importances. `used` is the number of trials; of many, a sample is used."""

    used: int
    importances: tuple[Importance, ...]
