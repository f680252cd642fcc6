"""Promotion requests with their gates and decisions."""

from pydantic import Field

from jobs.contracts.answers.base import Answer, Time


class GateOut(Answer):
    """One gate and the values that it compared."""

    name: str
    state: str = Field(description="passed, failed, skipped, not_evaluated or overridden.")
    value: float | str | bool | None
    limit: float | str | bool | None
    champion: float | str | bool | None = Field(description="The value of the version in production.")
    detail: str


class PromotionDecisionOut(Answer):
    """One entry in the thread of a promotion request."""

    user: str
    verdict: str = Field(description="approve, reject, withdraw or comment.")
    comment: str
    accept: list[str] = Field(description="Gates that were accepted without an evaluation.")
    digest: str = Field(description="Of the version that was decided on.")
    created: Time


class PromotionOut(Answer):
    """A promotion request."""

    id: int
    state: str
    model: str
    version: int
    digest: str
    stage: str
    comment: str
    requested_by: str
    baseline: int | None = Field(description="The version in production when the request was made.")
    gates: list[GateOut]
    gate_job: int | None
    decisions: list[PromotionDecisionOut]
    generation: int | None = Field(description="The generation of the release that followed.")
    expires: Time
    created: Time
    decided: Time | None
