"""Defines an ensemble's report: its members, their weights, their diversity and what each adds."""

from typing import Literal

from pydantic import Field

from jobs.messages.reports.base import FiniteOrNull, Metrics, MetricValue, ModelReport
from jobs.spec.sections.data import Task


class Candidate(ModelReport):
    """A member, the plain mean of all members, or the ensemble, on validation rows."""

    name: str
    kind: Literal["member", "mean", "ensemble"]
    loss: FiniteOrNull
    metrics: Metrics


class MemberWeight(ModelReport):
    """The weight of one member; 0 if it is left out."""

    member: str
    weight: float


class MemberGain(ModelReport):
    """By how much the loss rises if the ensemble loses a member."""

    member: str
    gain: FiniteOrNull


class MemberTitle(ModelReport):
    """The name of a member for people."""

    name: str
    title: str


class WeightFit(ModelReport):
    """The losses of the fitted weights, and the losses that they are compared with."""

    loss_name: str
    loss: FiniteOrNull = Field(description="On the validation rows that the weights were fitted on.")
    loss_equal_weights: FiniteOrNull
    loss_held_out: FiniteOrNull = Field(description="On rows that were left out when fitting, by folds.")
    evaluations: int
    gain: MetricValue | None = Field(
        default=None,
        description="By how much the held-out loss is below that of the best member, row by row; "
        "null in reports of earlier releases.",
    )


class MemberPair(ModelReport):
    """How different the predictions of two members are; null where it is undefined."""

    a: str
    b: str
    disagreement: FiniteOrNull = Field(
        description="Share of rows with other predictions; of a regression, the mean difference in standard "
        "deviations of the target."
    )
    error_correlation: FiniteOrNull
    q_statistic: FiniteOrNull = Field(description="Yule's Q; null for a regression.")


class Diversity(ModelReport):
    """The comparison of every pair of members."""

    pairs: tuple[MemberPair, ...]
    mean_disagreement: FiniteOrNull


class EnsembleReport(ModelReport):
    """The comparison of an ensemble with its members on validation rows."""

    task: Task
    method: Literal["mean", "weighted"]
    validation_rows: int
    candidates: tuple[Candidate, ...]
    best_single: str
    weights: tuple[MemberWeight, ...]
    fit: WeightFit
    diversity: Diversity
    leave_one_out: tuple[MemberGain, ...]
    note: str = ""
    weighted_by: str = Field(
        default="",
        description="The column whose numbers weigh the rows in losses, gains and metrics, also in the fit; "
        "empty if each row counts once. The diversity counts each row once.",
    )
    members: tuple[MemberTitle, ...] = Field(default=(), description="Empty in reports of earlier releases.")
    difference: FiniteOrNull = Field(
        default=None, description="The largest difference between the saved model and its members' mean."
    )

    def candidate(self, name: str) -> Candidate:
        """Return a member by its name, or the candidate `mean` or `ensemble`."""
        return next(candidate for candidate in self.candidates if candidate.name == name)

    def title(self, name: str) -> str:
        """Return a member's name for people."""
        return next((member.title for member in self.members if member.name == name and member.title), name)
