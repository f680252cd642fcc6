"""Defines the payload, the result and an ensemble's task."""

from typing import Literal

from pydantic import Field

from jobs.kinds.base import Payload, Result
from jobs.messages.member import Member
from jobs.messages.reports.ensemble import MemberWeight
from jobs.messages.task import DatasetFile, Task
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.sections.after import Ensemble


class EnsemblePayload(Payload):
    """The trainings whose models are pooled, by their primary keys."""

    members: tuple[int, ...]

    def member_names(self) -> dict[int, str]:
        """Return the members' names."""
        return {training: member_name(training) for training in self.members}


class EnsembleResult(Result):
    """The ensemble's weights, and its best single member."""

    weights: list[MemberWeight] = []
    best_single: str = ""
    members: list[str] = []
    parameters: int | None = None
    note: str = ""

    def member_weights(self) -> dict[str, float]:
        """Return the weights by the members' names."""
        return {each.member: each.weight for each in self.weights}


def member_name(training: int) -> str:
    """Return a member's name in reports, made from its training's primary key."""
    return f"m{training}"


class EnsembleTask(Task):
    """Fit weights on the members' validation predictions, save one .keras, evaluate on test once."""

    kind: Literal["ensemble"] = "ensemble"
    spec: ExperimentSpec
    ensemble: Ensemble
    dataset: DatasetFile
    members: tuple[Member, ...] = Field(min_length=2)
    best_member: str = Field(default="", description="name of the member that the objective chose")
