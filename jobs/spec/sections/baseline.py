"""Declares the score of the constant prediction, with which a search's best trial is compared."""

from typing import Annotated, Literal

from pydantic import Field

from jobs.spec.base import Frozen
from jobs.spec.sections.measures import LONGEST_NAME

LONGEST_LABEL = 100
"""So many characters of a class or a label are kept."""
ConstantKind = Literal["class", "classes", "frequencies", "label", "labels", "mean", "median"]
"""The prediction for every row: the most frequent class, the five most frequent ones, the frequency of each
class or label, one label alone, the labels of most rows, or the target's mean or median."""


class Constant(Frozen):
    """The prediction that ignores the features and has the best score on the training rows.

    Attributes:
        kind: of the prediction.
        value: the class or the label, or the number for a single target; None if it has several parts.
    """

    kind: ConstantKind
    value: Annotated[str, Field(max_length=LONGEST_LABEL)] | float | None = None

    def describe(self) -> str:
        """Return it in words, such as: always 'no'."""
        if self.kind in ("mean", "median"):
            return (
                f"always the {self.kind}"
                if self.value is None
                else f"always {self.value:.4g}, the {self.kind} of the training rows"
            )
        if self.value is None:
            return _WITHOUT_VALUE[self.kind]
        return f"always {self.value!r}" + (" alone" if self.kind == "label" else "")


_WITHOUT_VALUE: dict[ConstantKind, str] = {
    "class": "always the most frequent class",
    "classes": "always the five most frequent classes",
    "frequencies": "always the frequencies in the training rows",
    "label": "always one label alone",
    "labels": "always the labels that more than half of the rows have",
}


class Baseline(Frozen):
    """The constant prediction's score on the validation rows of one part of an evaluation.

    Attributes:
        metric: the search's objective.
        repeat: of the cross-validation, from 1; 1 without one, since all trainings then have the same rows.
        fold: from 1; None without a cross-validation.
        score: None if the metric has no constant prediction, or is undefined on these rows.
        constant: the prediction; None without a score.
        low, high: the score's 95 % interval for the choice of rows; None if it was not computed.
    """

    metric: str = Field(max_length=LONGEST_NAME)
    repeat: int = Field(default=1, ge=1)
    fold: int | None = Field(default=None, ge=1)
    score: float | None = None
    constant: Constant | None = None
    low: float | None = None
    high: float | None = None
